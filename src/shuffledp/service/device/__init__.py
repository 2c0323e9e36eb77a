"""A person's device in a campaign: it chooses, computes and reports by itself, and nothing else leaves it."""

from shuffledp.service.device.choosing import DeviceChoice
from shuffledp.service.device.device import Device, Outcome

__all__ = ["Device", "DeviceChoice", "Outcome"]
