"""The way to pages of the web: addresses judged before anything is connected to, and everything that comes bounded."""
