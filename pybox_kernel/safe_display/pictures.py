"""Pictures from a box: PNG and JPEG, walked part by part without decoding a pixel, and written anew.

What is written holds only the parts that a picture is drawn from. Texts, times, colour profiles, previews, orientation
and animations are left out, and so is whatever follows the end: viewers do not look at it, and harmless tools write it.
Cleaning what is clean changes nothing.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from pybox_kernel.safe_display.displays import Picture, Refused

__all__ = ["MOST_BYTES", "MOST_PIXELS", "MOST_SIDE", "checked_jpeg", "checked_png"]

MOST_BYTES: Final = 1 << 20
MOST_SIDE: Final = 8192
MOST_PIXELS: Final = 1 << 24


def check_size(width: int, height: int) -> None:
    if not width or not height:
        raise Refused("a picture without pixels")
    if max(width, height) > MOST_SIDE or width * height > MOST_PIXELS:
        raise Refused(f"{width:,} × {height:,} pixels; at most {MOST_SIDE:,} each way, {MOST_PIXELS:,} in all")


def check_bytes(data: bytes) -> None:
    if len(data) > MOST_BYTES:
        raise Refused(f"larger than {MOST_BYTES >> 20} MB")


# PNG: https://www.w3.org/TR/png-3/

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
CHUNK: Final = struct.Struct(">I4s")
CRC: Final = struct.Struct(">I")
IHDR: Final = struct.Struct(">IIBBBBB")
CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By colour type."""
DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PALETTE: Final = 3
TRANSPARENCY: Final = {0: 2, 2: 6}
"""Bytes of tRNS by colour type; with a palette, one for each of its first colours."""
ADAM7: Final = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""First column and row, and steps, of each pass of an interlaced picture."""
INFLATED_AT_ONCE: Final = 1 << 18
DAMAGED_PNG: Final = "a damaged PNG"


class Header(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    compression: int
    filter: int
    interlace: int


def checked_png(data: bytes) -> Picture:
    """The picture, or Refused."""
    check_bytes(data)
    if not data.startswith(SIGNATURE):
        raise Refused("not a PNG")
    parts: dict[bytes, bytes] = {}
    pixels: list[bytes] = []
    previous = b""
    for kind, body in png_chunks(data):
        if (kind == b"IHDR") != (previous == b""):
            raise Refused(DAMAGED_PNG)
        if kind == b"IDAT":
            if pixels and previous != b"IDAT":
                raise Refused(DAMAGED_PNG)
            pixels.append(body)
        elif kind in (b"IHDR", b"PLTE", b"tRNS"):
            if kind in parts or pixels:
                raise Refused(DAMAGED_PNG)
            parts[kind] = body
        elif is_critical(kind) and kind != b"IEND":
            raise Refused("a PNG with a part that is not known")
        previous = kind
    header = png_header(parts[b"IHDR"])
    written = [
        (b"IHDR", parts[b"IHDR"]),
        *png_colours(header, parts.get(b"PLTE"), parts.get(b"tRNS")),
        (b"IDAT", png_pixels(header, b"".join(pixels))),
        (b"IEND", b""),
    ]
    clean = SIGNATURE + b"".join(png_chunk(kind, body) for kind, body in written)
    return Picture("image/png", header.width, header.height, clean)


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each chunk up to IEND, its check sum checked. There is at least one."""
    position = len(SIGNATURE)
    kind = b""
    while kind != b"IEND":
        if position + CHUNK.size > len(data):
            raise Refused(DAMAGED_PNG)
        length, kind = CHUNK.unpack_from(data, position)
        end = position + CHUNK.size + length
        if end + CRC.size > len(data) or CRC.unpack_from(data, end)[0] != zlib.crc32(data[position + 4 : end]):
            raise Refused(DAMAGED_PNG)
        yield kind, data[position + CHUNK.size : end]
        position = end + CRC.size


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return CHUNK.pack(len(body), kind) + body + CRC.pack(zlib.crc32(kind + body))


def is_critical(kind: bytes) -> bool:
    """A reader that does not know it cannot show the picture."""
    return not kind[0] & 0x20


def png_header(body: bytes) -> Header:
    if len(body) != IHDR.size:
        raise Refused(DAMAGED_PNG)
    header = Header(*IHDR.unpack(body))
    check_size(header.width, header.height)
    if (
        header.depth not in DEPTHS.get(header.colour, ())
        or (header.compression, header.filter) != (0, 0)
        or header.interlace > 1
    ):
        raise Refused(DAMAGED_PNG)
    return header


def png_colours(header: Header, palette: bytes | None, transparent: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    """The palette where pixels are drawn from one, elsewhere it is a hint; and what is transparent."""
    colours = 0
    if header.colour == PALETTE:
        colours, rest = divmod(len(palette or b""), 3)
        if palette is None or rest or not 1 <= colours <= 1 << header.depth:
            raise Refused(DAMAGED_PNG)
        yield b"PLTE", palette
    if transparent is not None:
        known = len(transparent) == TRANSPARENCY.get(header.colour, -1)
        if not known and not (header.colour == PALETTE and 1 <= len(transparent) <= colours):
            raise Refused(DAMAGED_PNG)
        yield b"tRNS", transparent


def png_pixels(header: Header, deflated: bytes) -> bytes:
    """The compressed pixels, up to their end. They are inflated, piece by piece and to nothing, to see that there are
    as many of them as the header says: whatever reads the picture later may not stop there by itself."""
    wanted = png_size(header)
    inflater = zlib.decompressobj()
    rest, found = deflated, 0
    try:
        while not inflater.eof and found <= wanted:
            piece = inflater.decompress(rest, INFLATED_AT_ONCE)
            rest = inflater.unconsumed_tail
            if not piece and not rest and not inflater.eof:
                break
            found += len(piece)
    except zlib.error:
        raise Refused(DAMAGED_PNG) from None
    if not inflater.eof or found != wanted:
        raise Refused("a PNG with more or fewer pixels than it says")
    return deflated[: len(deflated) - len(inflater.unused_data)]


def png_size(header: Header) -> int:
    """Bytes of all rows, each with the one that names its filter."""
    bits = CHANNELS[header.colour] * header.depth
    passes = ADAM7 if header.interlace else ((0, 0, 1, 1),)
    size = 0
    for left, top, across, down in passes:
        columns = -((left - header.width) // across)
        rows = -((top - header.height) // down)
        if columns > 0 and rows > 0:
            size += rows * (1 + (columns * bits + 7) // 8)
    return size


# JPEG: ITU-T T.81, and T.871 and T.872 for the two application segments that name the colours

SOI, EOI, SOS, COM = 0xD8, 0xD9, 0xDA, 0xFE
DHT, DQT, DRI = 0xC4, 0xDB, 0xDD
SOFS: Final = (0xC0, 0xC1, 0xC2)
"""Baseline, extended, progressive, all with Huffman codes: what browsers show."""
APP0, APP14, APP15 = 0xE0, 0xEE, 0xEF
MOST_SCANS: Final = 32
"""A progressive picture has about ten. Each is a pass over all pixels, however few bytes it takes."""
MARKER_IN_SCAN: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
JFIF: Final = b"JFIF\0\1\1\0\0\1\0\1\0\0"
"""Version 1.1, square pixels, no preview."""
ADOBE: Final = b"Adobe\0\x64\0\0\0\0"
"""Version 100, no flags; behind it one byte for the colours: 0 as they are, 1 YCbCr, 2 YCCK."""
DAMAGED_JPEG: Final = "a damaged JPEG"


def checked_jpeg(data: bytes) -> Picture:
    """The picture, or Refused. Of its application segments only what names its colours is kept, in a fixed form."""
    check_bytes(data)
    if not data.startswith(b"\xff\xd8\xff"):
        raise Refused("not a JPEG")
    size: tuple[int, int] | None = None
    components = b""
    colours: dict[int, bytes] = {}
    scans = 0
    kept: list[bytes] = []
    for marker, body, scan in jpeg_segments(data):
        if APP0 <= marker <= APP15 or marker == COM:
            if not scans:
                colours.update(colour_segment(marker, body))
            continue
        if marker in SOFS:
            if size is not None:
                raise Refused(DAMAGED_JPEG)
            size, components = jpeg_frame(body)
        elif marker == SOS:
            scans += 1
            check_scan(body, components, scans)
        elif marker not in (DHT, DQT, DRI):
            raise Refused("a JPEG of a kind that browsers do not show")
        elif not is_whole(marker, body):
            raise Refused(DAMAGED_JPEG)
        kept += [jpeg_segment(marker, body), scan]
    if size is None or not scans:
        raise Refused(DAMAGED_JPEG)
    named = [jpeg_segment(marker, colours[marker]) for marker in sorted(colours)]
    return Picture("image/jpeg", *size, b"".join([b"\xff\xd8", *named, *kept, b"\xff\xd9"]))


def jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each segment between SOI and EOI: its marker, its content, the scan behind it."""
    position = 2
    while True:
        start = position
        while data[position : position + 1] == b"\xff":
            position += 1
        if position == start or position >= len(data):
            raise Refused(DAMAGED_JPEG)
        marker = data[position]
        position += 1
        if marker == EOI:
            return
        length = int.from_bytes(data[position : position + 2])
        end = position + length
        if marker < 0xC0 or 0xD0 <= marker <= SOI or length < 2 or end > len(data):
            raise Refused(DAMAGED_JPEG)
        scan_end = end
        if marker == SOS:
            found = MARKER_IN_SCAN.search(data, end)
            if found is None:
                raise Refused(DAMAGED_JPEG)
            scan_end = found.start()
        yield marker, data[position + 2 : end], data[end:scan_end]
        position = scan_end


def jpeg_segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2) + body


def colour_segment(marker: int, body: bytes) -> dict[int, bytes]:
    """How a JFIF or Adobe segment has the colours read, as a segment of fixed form."""
    if marker == APP0 and body.startswith(b"JFIF\0") and len(body) >= len(JFIF):
        return {APP0: JFIF}
    if marker == APP14 and body.startswith(b"Adobe") and len(body) >= 12 and body[11] <= 2:
        return {APP14: ADOBE + body[11:12]}
    return {}


def jpeg_frame(body: bytes) -> tuple[tuple[int, int], bytes]:
    """Width and height, and the names of the components."""
    count = body[5] if len(body) > 5 else 0
    if count not in (1, 3, 4) or len(body) != 6 + 3 * count or body[0] != 8:
        raise Refused("a JPEG of a kind that browsers do not show")
    height, width = int.from_bytes(body[1:3]), int.from_bytes(body[3:5])
    check_size(width, height)
    names, samplings, tables = body[6::3], body[7::3], body[8::3]
    if (
        len(set(names)) != count
        or any(not (1 <= both >> 4 <= 4 and 1 <= both & 15 <= 4) for both in samplings)
        or max(tables) > 3
    ):
        raise Refused(DAMAGED_JPEG)
    return (width, height), names


def check_scan(body: bytes, components: bytes, number: int) -> None:
    count = body[0] if body else 0
    if not 1 <= count <= 4 or len(body) != 4 + 2 * count or not set(body[1 : 1 + 2 * count : 2]) <= set(components):
        raise Refused(DAMAGED_JPEG)
    if number > MOST_SCANS:
        raise Refused(f"a JPEG of more than {MOST_SCANS} layers")


def is_whole(marker: int, body: bytes) -> bool:
    """Whether a segment of tables is made up of whole tables."""
    position = 0
    while position < len(body):
        if marker == DRI:
            return len(body) == 2
        if marker == DQT:
            position += 129 if body[position] >> 4 else 65
        else:
            position += 17 + sum(body[position + 1 : position + 17])
    return position == len(body) > 0
