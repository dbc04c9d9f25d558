"""What is broken on purpose: processes killed, disks filled, folders taken away."""
