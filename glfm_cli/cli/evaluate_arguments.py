"""What the text of `glfm evaluate`'s list-like options means."""

from __future__ import annotations

from glfm_cli.errors import UsageError


def listed(text: str) -> list[str]:
    """Return the parts of a comma-separated list, empty ones left out."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_rates(text: str) -> list[float]:
    """Return the numbers of a comma-separated list."""
    rates = []
    for part in listed(text):
        try:
            rates.append(float(part))
        except ValueError:
            raise UsageError(
                "--rates", value=f"'{part}'", expected="numbers between 0 and 1, such as 0.1,0.3"
            ) from None
    return rates


def parse_programs(items: list[str]) -> dict[str, str]:
    """Return the commands of `NAME=COMMAND` texts, by name."""
    programs: dict[str, str] = {}
    for item in items:
        name, equals, command = item.partition("=")
        name = name.strip()
        if not equals or not name or any(c in name for c in " ,{}"):
            raise UsageError(
                f"--method {item}",
                expected="NAME=COMMAND",
                hint="For example 'mice=Rscript mice.R {input} {types} {output} {seed}'.",
            )
        if name in programs:
            raise UsageError(f"--method {name}", value="the name twice", expected="each name once")
        programs[name] = command.strip()
    return programs
