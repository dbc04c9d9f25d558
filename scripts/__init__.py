"""What the project needs beside its product: providing programs, writing pages."""
