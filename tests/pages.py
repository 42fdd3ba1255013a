"""The examples of a page of documentation as one program, which does what its reader would, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from autorubric.cli.app import app

ROOT: Final = Path(__file__).resolve().parents[1]
SHELLS: Final = ("bash", "console")

_FENCE = re.compile(
    r"(?:^(?P<outer> *)<!-- not run: (?P<why>[^\n]+?) -->\n)?"
    r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
# Before what an example prints: no text has it.
_MARK = "\x1d"
# Columns of code, and lines of an output from which on it is shown in part.
WIDTH: Final = 86
_LONG = 30
# The duration of a run in its summary differs from one machine to the next.
_DURATION = re.compile(r"^( +seconds +)[\d.]+$", re.MULTILINE)
_NAMED = re.compile(r"# ([\w-]+\.(?:yaml|yml|json|toml))\n")
# What only a shell understands, outside of quotes.
_FOR_A_SHELL = re.compile(r"[|&;<>$*`]")
_QUOTED = re.compile(r'"[^"$`]*"|\'[^\']*\'|#.*')
# It reads the standard input of a process, which no runner puts another in the place of.
_SERVER = "autorubric mcp "
# Examples name models as users do; here the offline judge answers in their place.
_PREFIXES = (
    "anthropic|azure|bedrock|gemini|groq|hosted_vllm|llama_cpp|lm_studio|mistral|ollama|openrouter|sglang"
)
_MODEL = re.compile(rf"(?<=--judge )(?:gpt-|(?:{_PREFIXES})/)\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A fenced block.

    Attributes:
        language: What stands after the fence; may be empty.
        text: What is in it.
        why_not_run: What the comment above it gives as the reason for not running it here; None without one.
        output: The block of plain text directly below it: what it prints; None without one.
    """

    language: str
    text: str
    why_not_run: str | None
    output: str | None


def examples(page: Path) -> list[Example]:
    """The fenced blocks of a page, in order; those of tabs without their indentation."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_FENCE.finditer(text))
    return [
        Example(
            language=block["language"],
            text=textwrap.dedent(block["text"]),
            why_not_run=block["why"],
            output=textwrap.dedent(after["text"]) if after and _is_output(text, block, after) else None,
        )
        for block, after in zip_longest(blocks, blocks[1:])
    ]


def _is_output(text: str, block: re.Match[str], after: re.Match[str]) -> bool:
    return after["language"] == "text" and not text[block.end() : after.start()].strip()


def outputs(printed: str) -> dict[int, str]:
    """What each example of a page printed, by its position, from the standard output of its program."""
    _, *parts = printed.split(_MARK)
    return {int(part.partition(":")[0]): part.partition(":")[2].strip("\n") for part in parts}


def shows(output: str, printed: str) -> bool:
    """Whether a block shows what was printed, with lines wrapped in any way; `…` is any text."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in output.split("…"))
    return re.fullmatch(pattern.replace(".*", " ?.* ?"), " ".join(printed.split())) is not None


def with_outputs(page: Path, printed: dict[int, str]) -> str:
    """The page's text with what its Python examples print in the blocks below them."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_FENCE.finditer(text))
    known = examples(page)
    for index in reversed(range(len(blocks))):
        one, block, output = known[index], blocks[index], printed.get(index, "")
        if one.language != "python" or not output or (one.output and shows(one.output, output)):
            continue
        last = one.text.rstrip().rpartition("summary())")[2].count("\nprint(")
        output = _DURATION.sub(r"\1…", output)
        shown = textwrap.indent(
            "\n".join(["```text", *_wrapped(_short(output, last)), "```"]), block["indent"]
        )
        end = blocks[index + 1].end() if one.output is not None else block.end()
        text = f"{text[: block.end()]}\n\n{shown}{text[end:]}"
    return text


def _short(printed: str, last: int) -> list[str]:
    """The lines of an output; of a long one the first part and the lines of its last prints."""
    lines = printed.splitlines()
    if len(lines) <= _LONG:
        return lines
    blank = next((n for n, line in enumerate(lines) if n >= _LONG // 3 and not line.strip()), _LONG)
    return [*lines[:blank], "…", *lines[len(lines) - last :]]


def _wrapped(lines: list[str]) -> list[str]:
    """Lines of sentences wrapped to the width of code; those of tables are kept."""
    return [
        part.rstrip()
        for line in lines
        for part in (
            [line]
            if len(line) <= WIDTH or "  " in line.strip()
            else textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        )
    ]


def program(page: Path, before: str = "") -> str:
    """The Python program that runs a page; empty where there is nothing to run.

    Blocks whose first line names a file, as `# rubric.yaml`, become that file.

    Args:
        page: The page.
        before: What is done first: a program that makes the files that the page takes for granted.
    """
    parts = []
    for index, one in enumerate(examples(page)):
        if one.why_not_run is not None:
            continue
        if one.language in ("python", *SHELLS):
            parts.append(f"print({_MARK + str(index) + ':'!r}, end='')\n")
        if one.language == "python":
            parts.append(one.text)
        elif one.language in SHELLS:
            parts.append(f"__import__('tests.pages').pages.shell({one.text!r})\n")
        elif named := _NAMED.match(one.text):
            parts.append(f"open({named[1]!r}, 'w', encoding='utf-8').write({one.text!r})\n")
    runs = any(one.language in ("python", *SHELLS) and one.why_not_run is None for one in examples(page))
    return "\n".join([before, *parts]) if runs else ""


def shell(commands: str) -> None:
    """Runs commands, one after the other.

    Those of autorubric are called in this process, which need not start anew for each; bash runs what
    needs a shell.

    Raises:
        RuntimeError: A command did not end with 0; a gate (`--fail-…`) may end with 1.
    """
    for command in _commands(commands):
        is_simple = command.startswith("autorubric ") and not _FOR_A_SHELL.search(_QUOTED.sub("", command))
        if is_simple and not command.startswith(_SERVER):
            done = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            code, told = done.exit_code, done.output
        else:
            ended = _in_bash(command)
            code, told = ended.returncode, ended.stdout + ended.stderr
        print(f"$ {command}\n{told}")
        if code not in ((0, 1) if "--fail-" in command else (0,)):
            raise RuntimeError(f"{command!r} ended with {code}:\n{told}")


def _commands(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        command = line.strip().removeprefix("$ ")
        if command and not command.startswith("#"):
            yield _MODEL.sub("lexical", command)


def _in_bash(command: str) -> subprocess.CompletedProcess[str]:
    """The finished command, for which `autorubric` is this copy of it."""
    with tempfile.TemporaryDirectory() as folder:
        called = Path(folder) / "autorubric"
        called.write_text(f"#!{sys.executable}\nfrom autorubric.cli import main\nmain()\n", encoding="utf-8")
        called.chmod(0o755)
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            env={**os.environ, "PATH": os.pathsep.join([folder, os.environ["PATH"]])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
