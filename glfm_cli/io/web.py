"""Tables behind an address of the web, read whole."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from glfm_cli.errors import TableError

SCHEMES = ("https:/", "http:/")  # of a path that was an address, one slash is left
PATIENCE = 60.0  # seconds without a byte


def is_address(text: str) -> bool:
    """Return whether a text is an address of the web."""
    return text.lower().startswith(SCHEMES)


def path_of(address: str) -> str:
    """Return the path of an address, whose suffix may tell the format."""
    return unquote(urlsplit(address).path)


def download(address: str) -> bytes:
    """Return what stands behind an address.

    Raises TableError: the address is wrong, or the server refuses or does not answer.
    """
    # Not imported by those who read no address.
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    try:
        # Some servers refuse who does not name himself.
        with urlopen(Request(address, headers={"User-Agent": "glfm"}), timeout=PATIENCE) as answer:
            return answer.read()
    except HTTPError as error:
        error.close()
        problem = f"the server answered {error.code} {error.reason}"
    except (URLError, OSError, HTTPException, ValueError) as error:
        problem = " ".join(str(getattr(error, "reason", error) or error).split())[:120]
    raise TableError(
        f"cannot be read: {problem}",
        file=address,
        hint="Check the address; behind a login, download the file first.",
    )
