"""How long the light commands take, against a Python that does nothing."""

import subprocess
import sys

from .measure import seconds


def main() -> None:
    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    nothing = seconds(lambda: run("-c", "pass"))
    for command in (["--help"], ["--version"], ["backbones"]):
        taken = seconds(lambda command=command: run("-m", "lmpnn_kge", *command))
        print(f"{command[0]:10} {taken * 1000:5.0f} ms  {taken / nothing:4.1f} × an empty Python")


if __name__ == "__main__":
    main()
