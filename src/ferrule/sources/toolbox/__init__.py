"""Toolboxes: one executable file is one tool, by the protocol of Amp."""
