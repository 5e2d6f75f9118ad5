"""Print the requirements that pyproject.toml states, one a line.

`python scripts/build_requirements.py pyproject.toml` prints those of the build system;
`python scripts/build_requirements.py pyproject.toml EXTRA` prints the package's own and those of an extra,
the extras that it names included.
"""

import re
import sys
import tomllib
from pathlib import Path


def extra_requirements(
    project: dict[str, object], extra: str, seen: frozenset[str] = frozenset()
) -> list[str]:
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    if extra not in extras:
        raise SystemExit(f"no extra {extra!r}; there are {', '.join(sorted(extras))}")
    own = re.compile(rf"{project['name']}\[(?P<extras>[\w,\s-]+)\]")
    found = []
    for requirement in extras[extra]:
        match = own.fullmatch(requirement)
        if match is None:
            found.append(requirement)
            continue
        for inner in (name.strip() for name in match["extras"].split(",")):
            if inner not in seen:
                found += extra_requirements(project, inner, seen | {extra})
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    settings = tomllib.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if len(arguments) == 1:
        requirements = settings["build-system"]["requires"]
    else:
        project = settings["project"]
        requirements = project["dependencies"] + extra_requirements(project, arguments[1])
    print("\n".join(dict.fromkeys(requirements)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
