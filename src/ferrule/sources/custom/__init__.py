"""Tools of the user and of the project: Python modules, Lua modules and executables."""
