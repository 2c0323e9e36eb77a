"""Which hop of cascades a shuffler is: what it reads of a task, what its store keeps of it, and what it must refuse."""

import json
from dataclasses import dataclass

from shuffledp.errors import ParameterError
from shuffledp.service.hops import hops_of_task
from shuffledp.service.rounds import RoundsRouting, routing_from, routing_of_task
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.layers import Layer


@dataclass(frozen=True)
class OwnHop:
    """A shuffler's place: hop 1 without a layer where it serves no cascade.

    Attributes:
        layer: which hop it is, and what takes its layer off; None where it serves no cascade.
    """

    layer: Layer | None

    @property
    def number(self) -> int:
        """Which hop it is, from 1."""
        return 1 if self.layer is None else self.layer.hop

    def close(self) -> None:
        """Let go of what takes the layer off."""
        if self.layer is not None:
            self.layer.opener.close()

    def read(self, text: str) -> tuple[str, Routing | RoundsRouting]:
        """The id of a task or a campaign and its routing here, which is all that is read of its text.

        Raises:
            ParameterError: it is a cascade, and this is none of its hops; or this is a hop, and it is no cascade.
        """
        hops = hops_of_task(text)
        if hops and self.layer is None:
            problem = f"must be given: the task is for a cascade of {len(hops)}"
            raise ParameterError("hop", None, problem, "serve it with --hop N and the keys of hop N")
        found = routing_of_task(text, self.number)
        if self.layer is not None and not hops:
            problem = "must be left out: the task is for one shuffler, and the next hop would take none of its batches"
            way_out = "serve it at a shuffler of its own that sends to the analyzer, or create it again with --hop"
            raise ParameterError("hop", self.number, problem, way_out)
        if hops and self.layer is not None and hops[self.number - 1] != self.layer.key.text:
            problem = f"must be the task's hop {self.number}, whose key is {hops[self.number - 1]}"
            way_out = "name that hop's folder of keys, or the number of this one's"
            raise ParameterError("hop", f"the key {self.layer.key.text}", problem, way_out)
        return found

    def kept(self, routing: Routing | RoundsRouting) -> str:
        """What the store has of a task: its routing here, and of a cascade's whose key it is for."""
        owner = {} if self.layer is None or not routing.layers else {"hop_key": self.layer.key.text}
        return json.dumps({**routing.document(), **owner})

    def load(self, text: str) -> Routing | RoundsRouting:
        """What the store has of a task.

        Raises:
            ParameterError: it began as another hop, or with another key: this one could open nothing that waits there.
        """
        document = json.loads(text)
        routing, own = routing_from(document), None if self.layer is None else self.layer.key.text
        if routing.layers and (routing.hop, document.get("hop_key")) != (self.number, own):
            found = "no hop" if self.layer is None else f"hop {self.number} with the key {own}"
            problem = f"must be hop {routing.hop} with the key {document.get('hop_key')}, as the store began"
            way_out = "serve the store with --hop and --keys of that hop; nothing was changed"
            raise ParameterError("hop", found, problem, way_out)
        return routing
