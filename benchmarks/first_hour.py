"""What a newcomer waits for, in CPU seconds of a process of its own beside `import scipy.stats`: `make bench`."""

import os
import subprocess
import sys

from report import figure, report

ROUNDS = 3
COMMANDS = {
    "scipy.stats": ["-c", "import scipy.stats"],
    "BinarySum": ["-c", "import shuffledp; shuffledp.BinarySum"],
    "client": ["-c", "import shuffledp.service.client"],
    "plan": ["-m", "shuffledp", "plan", "binary-sum", "--users", "10000", "--epsilon", "1", "--delta", "1e-6"],
    "help": ["-m", "shuffledp", "--help"],
}


def seconds(arguments: list[str]) -> float:
    """The CPU time of one process, by itself and in the system."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed")
    return used.ru_utime + used.ru_stime


def measured() -> dict[str, float]:
    """The best of several rounds of each, taken in turn."""
    rounds = [{name: seconds(arguments) for name, arguments in COMMANDS.items()} for _ in range(ROUNDS)]
    return {name: min(each[name] for each in rounds) for name in COMMANDS}


def main() -> int:
    """Ratios, and on an idle machine of 2026 the seconds that they stand for."""
    took = measured()
    beside = took["scipy.stats"]
    rows = [
        ("import shuffledp; shuffledp.BinarySum", "BinarySum", 0.9),
        ("the live client", "client", 1.3),
        ("plan binary-sum, the whole command", "plan", 2.0),
        ("shuffledp --help", "help", 1.0),
    ]
    return report(
        "First hour",
        [
            figure(name, took[key] / beside, "<=", most, f"{took[key]:.2f} s; import scipy.stats {beside:.2f} s")
            for name, key, most in rows
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
