"""What `ferrule proxy` is measured by: its load (`load`), and the table of cases (`python -m bench.proxy`)."""
