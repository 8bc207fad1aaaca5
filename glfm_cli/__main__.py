"""`python -m glfm_cli` is the command `glfm`."""

from glfm_cli.cli.app import main

if __name__ == "__main__":
    main()
