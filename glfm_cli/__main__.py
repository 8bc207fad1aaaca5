"""`python -m glfm_cli` is the command `glfm`."""

import gc
import signal

# Until the command runs there is nothing to write or to tidy up: Ctrl-C just ends the process.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from glfm_cli.cli.app import main

# Nearly all that a start makes lives to the end; to look for garbage among it 200 times takes a
# twentieth of it.
gc.set_threshold(200_000)

if __name__ == "__main__":
    main()
