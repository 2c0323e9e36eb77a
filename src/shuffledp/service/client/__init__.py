"""The client's side of the live service: take a seat, randomize, encrypt, keep until it is acknowledged."""

from shuffledp.service.client.calls import AnswerError, UnreachableError
from shuffledp.service.client.client import Client, ReportError, Sent
from shuffledp.service.client.relayed import Relay
from shuffledp.service.store.outboxes import Outbox

__all__ = ["AnswerError", "Client", "Outbox", "Relay", "ReportError", "Sent", "UnreachableError"]
