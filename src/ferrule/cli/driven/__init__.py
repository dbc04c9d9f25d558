"""The program that started `ferrule run` and talks to it in lines: it asks for things, and is asked."""
