"""When a call may start: after every earlier unfinished call that it conflicts with, and on a free slot."""
