# SPDX-License-Identifier: GPL-2.0-only
"""A kernel image's inside: the ELF file that it would unpack when it starts.

An emulated CPU takes seconds to unpack it, so QEMU gets the ELF file and enters it by its PVH note, as Xen does.
The layout is that of the kernel's Documentation/arch/x86/boot.rst."""

import lzma
import struct
import subprocess
import zlib

from .errors import LabError

SETUP_SECTORS, PAYLOAD_OFFSET = 0x1F1, 0x248  # where the header says how long it is, where its payload starts and ends
SECTOR = 512


def _by_program(*command):
    def unpack(payload):
        done = subprocess.run(command, input=payload[:-4], capture_output=True)  # the last 4 tell its unpacked size
        if done.returncode:
            raise LabError(f"{command[0]} could not unpack a kernel: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout
    return unpack


FORMATS = {
    b"\x1f\x8b": lambda payload: zlib.decompressobj(31).decompress(payload),
    b"\xfd7zXZ\0": lambda payload: lzma.LZMADecompressor().decompress(payload),
    b"\x28\xb5\x2f\xfd": _by_program("zstd", "-dcq"),
    b"\x02\x21\x4c\x18": _by_program("lz4", "-dcq"),
}


def unpack(image):
    """The bytes of the ELF file in a kernel image (vmlinuz); LabError when there is none."""
    offset, length = struct.unpack_from("<II", image, PAYLOAD_OFFSET)
    begin = (image[SETUP_SECTORS] + 1) * SECTOR + offset
    payload = image[begin:begin + length]
    inside = next((how(payload) for magic, how in FORMATS.items() if payload.startswith(magic)), payload)
    if not inside.startswith(b"\x7fELF"):
        raise LabError(f"a kernel image holds no ELF file but {payload[:6].hex()}...")
    return inside
