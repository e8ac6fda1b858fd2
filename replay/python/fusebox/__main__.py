"""`python -m fusebox` is the command `fusebox`."""

from fusebox.command_line import main

main()
