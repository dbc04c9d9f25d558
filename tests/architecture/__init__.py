"""What the code base promises about itself: its layers, its words, its documents, its start-up."""
