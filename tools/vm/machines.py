# SPDX-License-Identifier: GPL-2.0-only
"""The lab: one namespace, guests with their cables in it, everything gone at the end."""

import shutil
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

from . import leftovers, nics, packages
from .errors import LabError
from .guest import Guest, Options, Wire
from .network import Network


class Lab:
    """with Lab() as lab: guest = lab.guest(kernel="6.1"); guest.run("uname -r")

    lab.network.run(…) and .popen(…) run programs of the host beside the guests: their peers."""

    def __init__(self, say=lambda text: None):
        packages.ensure(say=say)
        leftovers.sweep()
        name = leftovers.new_name()
        self.folder = Path(tempfile.gettempdir()) / name
        self.folder.mkdir(mode=0o700)
        self.guests = []
        try:
            self.network = Network(name)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for guest in self.guests:
            guest.stop()
        self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self, options=None, **more):
        """A guest with a tap as its peer, not started yet. Options as an object or by name."""
        options = _options(options, more)
        nic = _nic(options)
        number = len(self.guests)
        wire = Wire()
        if nic.device:
            queues = nic.tap_queues(options.queues)
            tap = f"tap{number}"
            self.network.tap(tap, queues, f"10.88.{number}.1/24")
            wire = Wire(_tap_netdev(tap, queues), _mac(number), f"10.88.{number}.2/24", (tap,))
        return self._add(options, wire)

    def guest(self, options=None, **more):
        """A guest with a tap as its peer, up and answering. The host's end is guest.peer_address."""
        return self.prepare(options, **more).start()

    def pair(self, first=None, second=None, **more):
        """Two guests on one wire, both up: two hosts with two clocks. Alike, unless told."""
        options = [_options(each, more) for each in (first, second or first)]
        models = [_nic(each) for each in options]
        if not all(model.device for model in models):
            raise LabError("two guests need NICs to talk to each other")
        if any(model.host_queues for model in models):
            wires = self._bridge_wires(options, models)
        else:
            wires = self._socket_wires()
        pair = [self._add(each, wire) for each, wire in zip(options, wires)]
        for guest in pair:
            guest.spawn()
        for guest in pair:
            guest.wait_ready()
        return tuple(pair)

    def _add(self, options, wire):
        guest = Guest(self.network, self.folder / f"guest{len(self.guests)}", options, wire)
        guest.peer_address = wire.address.rpartition(".")[0] + ".1" if wire.address else ""
        self.guests.append(guest)
        return guest

    def _bridge_wires(self, options, models):
        """Queues that live in a tap need a tap each; a bridge joins the two."""
        number = len(self.guests)
        bridge = f"br{number}"
        self.network.bridge(bridge)
        for index, (option, model) in enumerate(zip(options, models)):
            queues = model.tap_queues(option.queues)
            tap = f"tap{number + index}"
            self.network.tap(tap, queues, bridge=bridge)
            # The second guest is waited for last: it brings up the bridge, and with it the wire.
            links = (tap, bridge) if index else (tap,)
            yield Wire(_tap_netdev(tap, queues), _mac(number + index), f"10.88.{number}.{index + 1}/24", links)

    def _socket_wires(self):
        """Queues that live in the device: QEMU to QEMU over a socket pair, no host network between them."""
        number = len(self.guests)
        for index, end in enumerate(socket.socketpair()):
            netdev = f"stream,id=n0,server=off,addr.type=fd,addr.str={end.fileno()}"
            yield Wire(netdev, _mac(number + index), f"10.88.{number}.{index + 1}/24", files=[end])


def _options(options, more):
    return replace(options or Options(), **more)


def _nic(options):
    nic = nics.find(options.nic)
    if not 1 <= options.queues <= nic.max_queues:
        raise LabError(f"{options.queues} queues: there can be 1 to {nic.max_queues}")
    return nic


def _tap_netdev(tap, queues):
    several = f",queues={queues}" if queues > 1 else ""
    return f"tap,id=n0,ifname={tap},script=no,downscript=no,vhost=off{several}"


def _mac(number):
    return f"52:54:00:88:{number:02x}:02"
