"""Whose turn it is: a writer's that needs the interpreter for its statements, or the event loop's beside it."""

import sys
import threading


class Turns:
    """Lets an event loop wait until a writer in the same process is at the disk, where it needs no interpreter.

    Python runs one thread at a time. A writer gives the interpreter away with every statement, and a busy loop does not
    give it back before it has nothing to do: the disk rests while there is work, and both threads wake each other up
    for nothing. So the loop gives way when it has handed something in, and goes on beside the writing to the disk.

    What is said here is a hint: whoever reads it too late waits a moment longer, or not at all.

    Attributes:
        patience: the most seconds that a loop waits; as long as Python lets any thread keep the interpreter.
    """

    def __init__(self) -> None:
        self.patience = sys.getswitchinterval()
        self._is_asked = self._is_at_disk = False
        self._loop_may_go_on = threading.Event()
        self._loop_may_go_on.set()

    def asked(self) -> None:
        """Something was handed in that a loop waits for; called before the writer can see it."""
        self._is_asked = True
        if not self._is_at_disk:
            self._loop_may_go_on.clear()

    def began(self) -> None:
        """The writer begins with the statements of a commit."""
        if self._is_asked:
            self._is_asked = False
            self._loop_may_go_on.clear()

    def at_disk(self) -> None:
        """All statements of the commit are through: what is left is for the disk."""
        self._is_at_disk = True
        self._loop_may_go_on.set()

    def ended(self) -> None:
        """The commit is on disk, or has failed."""
        self._is_at_disk = False
        self._loop_may_go_on.set()

    def give_way(self) -> None:
        """Wait until the writer's statements are through, or patience is at its end."""
        self._loop_may_go_on.wait(self.patience)
