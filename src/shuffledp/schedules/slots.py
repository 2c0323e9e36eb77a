"""Time in slots: how many users have come when so many slots are over, and the other way round."""

from typing import Any

import numpy as np


class SlotTimes:
    """Slots of `slot_users` users each, of which the first `short` have a user less."""

    slot_users: int
    short: int

    def users_by(self, slots: Any) -> Any:
        """How many users have come at the end of the first so many slots: of a number, or of an array of them."""
        short = np.minimum(slots, self.short) if isinstance(slots, np.ndarray) else min(slots, self.short)
        return slots * self.slot_users - short

    def place_of(self, times: Any) -> tuple[Any, Any]:
        """The slots that are over when so many users have come, and how many users came since.

        Args:
            times: a number of users, or an array of them.
        """
        in_short = self.short * (self.slot_users - 1)
        if not isinstance(times, np.ndarray):
            time = int(times)
            ahead, size = (0, self.slot_users - 1) if time < in_short else (self.short, self.slot_users)
            return divmod(time + ahead, size)
        over, since = np.divmod(times + self.short, self.slot_users)
        early = times < in_short
        if early.any():
            first, within = np.divmod(times, self.slot_users - 1)
            over, since = np.where(early, first, over), np.where(early, within, since)
        return over, since
