"""What single programs are seen to lose of what no checkpoint keeps: by copies, searches, git, and what feeds them."""
