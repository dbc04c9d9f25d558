"""Who may do what: decided on what a call touches, after names and arguments have their final form."""
