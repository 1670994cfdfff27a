"""Pictures from a box: kept as they look, written anew without anything else, or refused in words."""

from __future__ import annotations

import io
import struct
import zlib
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from pybox_kernel.safe_display import pictures
from pybox_kernel.safe_display.displays import Picture, Refused
from pybox_kernel.safe_display.pictures import MOST_BYTES, MOST_SCANS, checked_jpeg, checked_png

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KINDS = [(colour, depth) for colour, depths in pictures.DEPTHS.items() for depth in depths]


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def header(width: int, height: int, depth: int = 8, colour: int = 0, interlace: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace))


def rows(width: int, height: int, depth: int, colour: int) -> bytes:
    return (b"\0" + b"\x01" * -(-width * depth * pictures.CHANNELS[colour] // 8)) * height


def interlaced_rows(width: int, height: int, depth: int, colour: int) -> bytes:
    found = b""
    for left, top, across, down in pictures.ADAM7:
        columns, lines = len(range(left, width, across)), len(range(top, height, down))
        found += rows(columns, lines, depth, colour) if columns else b""
    return found


def png(*chunks: bytes) -> bytes:
    return SIGNATURE + b"".join(chunks)


IEND = chunk(b"IEND", b"")
PIXELS = chunk(b"IDAT", zlib.compress(rows(5, 3, 8, 0)))
PLAIN = png(header(5, 3), PIXELS, IEND)
MARKED = chunk(b"tEXt", b"Comment\0<script>alert(1)</script>")


def jpeg(**options: object) -> bytes:
    out = io.BytesIO()
    Image.linear_gradient("L").convert("RGB").resize((40, 30)).save(out, "JPEG", **options)
    return out.getvalue()


def refused_png(data: bytes) -> str:
    with pytest.raises(Refused) as found:
        checked_png(data)
    return str(found.value)


def refused_jpeg(data: bytes) -> str:
    with pytest.raises(Refused) as found:
        checked_jpeg(data)
    return str(found.value)


# PNG


@pytest.mark.parametrize(("kind", "interlace"), list(product(KINDS, (0, 1))))
@pytest.mark.parametrize(("width", "height"), [(1, 1), (5, 3), (8, 8), (17, 33), (3, 1), (1, 9)])
def test_a_png_of_every_kind_passes_byte_for_byte(
    kind: tuple[int, int], interlace: int, width: int, height: int
) -> None:
    colour, depth = kind
    make = interlaced_rows if interlace else rows
    palette = [chunk(b"PLTE", b"rgb" * 2)] if colour == pictures.PALETTE else []
    data = chunk(b"IDAT", zlib.compress(make(width, height, depth, colour)))
    whole = png(header(width, height, depth, colour, interlace), *palette, data, IEND)
    assert checked_png(whole) == Picture("image/png", width, height, whole)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_a_png_of_pillow_has_the_same_pixels_and_nothing_else(mode: str) -> None:
    picture = Image.effect_mandelbrot((60, 50), (-2, -1.5, 1, 1.5), 30)
    picture = picture.convert("I;16") if mode == "I;16" else picture.convert("RGB").convert(mode)
    told = PngImagePlugin.PngInfo()
    told.add_text("Comment", "<script>")
    told.add_itxt("XML:com.adobe.xmp", "<x/>")
    out = io.BytesIO()
    transparent = {"transparency": 3} if mode == "P" else {}
    picture.save(out, "PNG", pnginfo=told, dpi=(300, 300), exif=b"Exif\0\0MM\0*", icc_profile=b"p" * 200, **transparent)
    found = checked_png(out.getvalue() + b"<html>behind it</html>")
    assert (found.width, found.height) == picture.size
    for word in (b"tEXt", b"iTXt", b"eXIf", b"iCCP", b"pHYs", b"script", b"html"):
        assert word not in found.data
    with Image.open(io.BytesIO(out.getvalue())) as before, Image.open(io.BytesIO(found.data)) as after:
        assert after.convert("RGBA").tobytes() == before.convert("RGBA").tobytes()
    assert checked_png(found.data) == found


def test_only_the_parts_that_a_picture_is_drawn_from_are_kept() -> None:
    extra = [
        chunk(kind, b"payload")
        for kind in (b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"acTL", b"fdAT", b"aaAa", b"\xff\xff\xff\xff")
    ]
    assert checked_png(png(header(5, 3), *extra, PIXELS, *extra, IEND, *extra)).data == PLAIN
    deflated = zlib.compress(rows(5, 3, 8, 0))
    parts = [chunk(b"IDAT", deflated[:4]), chunk(b"IDAT", b""), chunk(b"IDAT", deflated[4:] + b"<script>")]
    assert checked_png(png(header(5, 3), *parts, IEND)).data == PLAIN
    hint = chunk(b"PLTE", b"rgb")
    coloured = chunk(b"IDAT", zlib.compress(rows(5, 3, 8, 2)))
    assert checked_png(png(header(5, 3, colour=2), hint, coloured, IEND)).data == png(
        header(5, 3, colour=2), coloured, IEND
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"not a png", b"\x89PNG", SIGNATURE[:-1], b" " + PLAIN, b"GIF89a" + PLAIN, b"<svg>", jpeg()],
)
def test_what_is_no_png_is_refused_as_that(data: bytes) -> None:
    assert refused_png(data) == "not a PNG"


@pytest.mark.parametrize(
    "data",
    [
        SIGNATURE,
        png(IEND),
        png(PIXELS, IEND),
        png(MARKED, header(5, 3), PIXELS, IEND),
        png(header(5, 3), header(5, 3), PIXELS, IEND),
        png(header(5, 3), PIXELS, header(5, 3), IEND),
        png(header(5, 3), PIXELS),
        png(header(5, 3), PIXELS, IEND)[:-1],
        png(header(5, 3), PIXELS, MARKED, PIXELS, IEND),
        png(header(5, 3), chunk(b"tRNS", b"\0\0"), chunk(b"tRNS", b"\0\0"), PIXELS, IEND),
        png(header(5, 3), chunk(b"tRNS", b"\0"), PIXELS, IEND),
        png(header(5, 3), PIXELS, chunk(b"tRNS", b"\0\0"), IEND),
        png(header(5, 3, colour=3), PIXELS, IEND),
        png(header(5, 3, colour=3), chunk(b"PLTE", b""), PIXELS, IEND),
        png(header(5, 3, colour=3), chunk(b"PLTE", b"rg"), PIXELS, IEND),
        png(header(5, 3, colour=3), chunk(b"PLTE", b"rgb" * 257), PIXELS, IEND),
        png(header(5, 3, depth=1, colour=3), chunk(b"PLTE", b"rgb" * 3), PIXELS, IEND),
        png(header(5, 3, colour=3), chunk(b"PLTE", b"rgb"), chunk(b"tRNS", b"\0\0"), PIXELS, IEND),
        png(header(5, 3, colour=3), PIXELS, chunk(b"PLTE", b"rgb"), IEND),
        png(header(5, 3, colour=4), chunk(b"tRNS", b"\0\0"), PIXELS, IEND),
        png(chunk(b"IHDR", b"\0\0\0\1" * 2 + b"\x08\0\0\0"), PIXELS, IEND),
        png(chunk(b"IHDR", b"\0\0\0\1" * 2 + b"\x08\0\1\0\0"), PIXELS, IEND),
        png(chunk(b"IHDR", b"\0\0\0\1" * 2 + b"\x08\0\0\1\0"), PIXELS, IEND),
        png(header(5, 3, interlace=2), PIXELS, IEND),
        png(header(5, 3, depth=3), PIXELS, IEND),
        png(header(5, 3, depth=4, colour=2), PIXELS, IEND),
        png(header(5, 3, colour=5), PIXELS, IEND),
        png(header(5, 3), chunk(b"IDAT", b"not deflated"), IEND),
        SIGNATURE + b"\xff\xff\xff\xffIHDR",
        PLAIN[:20] + b"\x01" + PLAIN[21:],
        PLAIN.replace(b"IDAT", b"IDAU"),
    ],
)
def test_a_png_with_something_out_of_place_is_refused(data: bytes) -> None:
    assert refused_png(data) == "a damaged PNG"


def test_a_png_with_an_unknown_part_that_its_picture_needs_is_refused() -> None:
    assert refused_png(png(header(5, 3), chunk(b"CgBI", b""), PIXELS, IEND)) == "a PNG with a part that is not known"


@pytest.mark.parametrize(
    ("width", "height"), [(60000, 60000), (8193, 1), (1, 8193), (8192, 2049), (2**31, 1), (2**32 - 1, 2**32 - 1)]
)
def test_a_picture_of_too_many_pixels_is_refused_by_its_header(width: int, height: int) -> None:
    why = f"{width:,} × {height:,} pixels; at most 8,192 each way, 16,777,216 in all"
    assert refused_png(png(header(width, height), PIXELS, IEND)) == why
    if max(width, height) < 65536:
        assert refused_jpeg(with_size(width, height)) == why


@pytest.mark.parametrize(("width", "height"), [(0, 1), (1, 0), (0, 0)])
def test_a_picture_without_pixels_is_refused(width: int, height: int) -> None:
    assert refused_png(png(header(width, height), PIXELS, IEND)) == "a picture without pixels"
    assert refused_jpeg(with_size(width, height)) == "a picture without pixels"


@pytest.mark.parametrize("size", [(4, 3), (5, 2), (6, 3), (5, 4), (8000, 2000)])
def test_pixels_that_are_more_or_fewer_than_the_header_says_are_refused(size: tuple[int, int]) -> None:
    assert refused_png(png(header(*size), PIXELS, IEND)) == "a PNG with more or fewer pixels than it says"
    assert "more or fewer" in refused_png(png(header(5, 3), chunk(b"IDAT", b""), IEND))
    assert "more or fewer" in refused_png(png(header(5, 3), IEND))
    cut = zlib.compress(rows(5, 3, 8, 0))[:-1]
    assert "more or fewer" in refused_png(png(header(5, 3), chunk(b"IDAT", cut), IEND))


def test_pixels_that_inflate_to_a_gigabyte_are_not_inflated() -> None:
    pressed = zlib.compressobj(9)
    # What follows a full flush stands by itself: the second megabyte can stand for all that follow.
    first, other = (pressed.compress(bytes(1 << 20)) + pressed.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    checksum = (900 << 20) % 65521 << 16 | 1
    bomb = first + other * 899 + b"\x03\x00" + checksum.to_bytes(4, "big")
    assert len(bomb) < MOST_BYTES
    assert "more or fewer" in refused_png(png(header(5, 3), chunk(b"IDAT", bomb), IEND))


def test_what_is_larger_than_a_megabyte_is_refused_unread() -> None:
    assert refused_png(PLAIN + bytes(MOST_BYTES)) == "larger than 1 MB"
    assert refused_jpeg(jpeg() + bytes(MOST_BYTES)) == "larger than 1 MB"
    assert checked_png(PLAIN + bytes(MOST_BYTES - len(PLAIN))).data == PLAIN


# JPEG


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def with_size(width: int, height: int) -> bytes:
    data = jpeg()
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def behind_start(data: bytes, *segments: bytes) -> bytes:
    return data[:2] + b"".join(segments) + data[2:]


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK", "YCbCr"])
@pytest.mark.parametrize(
    "options",
    [{}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_rows": 1}, {"quality": 100}, {"optimize": True}],
    ids=lambda options: next(iter(options), "plain"),
)
def test_a_jpeg_of_pillow_has_the_same_pixels_and_nothing_else(mode: str, options: dict[str, object]) -> None:
    out = io.BytesIO()
    Image.effect_mandelbrot((61, 50), (-2, -1.5, 1, 1.5), 30).convert("RGB").convert(mode).save(
        out, "JPEG", exif=b"Exif\0\0MM\0*", icc_profile=b"p" * 200, comment=b"<script>", dpi=(300, 300), **options
    )
    given = behind_start(
        out.getvalue(), segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"), b"\xff\xff" + segment(0xED, b"x")
    )
    found = checked_jpeg(given + b"<html>behind it</html>")
    assert (found.width, found.height) == (61, 50)
    for word in (b"Exif", b"ICC", b"script", b"html", b"xap"):
        assert word not in found.data
    with Image.open(io.BytesIO(given)) as before, Image.open(io.BytesIO(found.data)) as after:
        assert (after.mode, after.tobytes()) == (before.mode, before.tobytes())
    assert checked_jpeg(found.data) == found


@pytest.mark.parametrize("transform", [0, 1])
@pytest.mark.parametrize("jfif", [True, False])
def test_a_jpeg_keeps_how_its_colours_are_meant(transform: int, jfif: bool) -> None:
    bare = jpeg()
    bare = bare[:2] + bare[2 + 18 :]
    adobe = segment(0xEE, b"Adobe\0\x65\x80\0\0\0" + bytes([transform]) + b"<script>")
    given = behind_start(bare, adobe, *[segment(0xE0, b"JFIF\0\1\2\1\0\x48\0\x48\1\1rgb")] * jfif)
    found = checked_jpeg(given)
    with Image.open(io.BytesIO(given)) as before, Image.open(io.BytesIO(found.data)) as after:
        assert after.tobytes() == before.tobytes()
    assert b"script" not in found.data
    assert b"rgb" not in found.data
    assert checked_jpeg(found.data) == found


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", b"not", PLAIN, b"\xff\xd8\0", b" " + jpeg(), b"<svg>"])
def test_what_is_no_jpeg_is_refused_as_that(data: bytes) -> None:
    assert refused_jpeg(data) == "not a JPEG"


GOOD = jpeg()
FRAME = GOOD.index(b"\xff\xc0")
FRAME_SEGMENT = GOOD[FRAME : FRAME + 19]
SCAN = GOOD.index(b"\xff\xda")
SCANS = GOOD[SCAN:-2]


@pytest.mark.parametrize(
    "data",
    [
        GOOD[:-2],
        GOOD[:-1],
        GOOD[:SCAN] + b"\xff\xd9",
        GOOD[:SCAN],
        GOOD[:2] + b"\xff\xd9",
        GOOD[:FRAME] + GOOD[FRAME + 19 :],
        GOOD[:FRAME] + FRAME_SEGMENT + GOOD[FRAME:],
        GOOD[:SCAN] + SCANS + FRAME_SEGMENT + b"\xff\xd9",
        GOOD[:2] + SCANS + GOOD[2:],
        behind_start(GOOD, b"\xff\xd8"),
        behind_start(GOOD, b"\xff\xd0"),
        behind_start(GOOD, b"\xff\x01"),
        behind_start(GOOD, b"\xff\x00"),
        GOOD[:FRAME] + b"x" + GOOD[FRAME:],
        behind_start(GOOD, b"\xff\xe1\0\1"),
        behind_start(GOOD, b"\xff\xe1\xff\xff"),
        behind_start(GOOD, segment(0xDB, b"")),
        behind_start(GOOD, segment(0xDB, b"\0" + b"q" * 63)),
        behind_start(GOOD, segment(0xDB, b"\0" + b"q" * 64 + b"<script>")),
        behind_start(GOOD, segment(0xC4, b"\0" + b"\1" * 16)),
        behind_start(GOOD, segment(0xC4, b"\0" + bytes(16) + b"<script>")),
        behind_start(GOOD, segment(0xDD, b"\0\0\0")),
        GOOD[:-2] + b"\xff\x01\xff\xd9",
        GOOD.replace(FRAME_SEGMENT, FRAME_SEGMENT[:10] + b"\1\x22\0\1\x11\1\3\x11\1"),
        GOOD.replace(FRAME_SEGMENT, FRAME_SEGMENT[:10] + b"\1\x52\0\2\x11\1\3\x11\1"),
        GOOD.replace(FRAME_SEGMENT, FRAME_SEGMENT[:10] + b"\1\x02\0\2\x11\1\3\x11\1"),
        GOOD.replace(FRAME_SEGMENT, FRAME_SEGMENT[:10] + b"\1\x22\4\2\x11\1\3\x11\1"),
        GOOD.replace(SCANS[:14], b"\xff\xda\0\x0c\3\1\0\2\x11\4\x11\0\x3f\0"),
    ],
)
def test_a_jpeg_with_something_out_of_place_is_refused(data: bytes) -> None:
    assert refused_jpeg(data) == "a damaged JPEG"


@pytest.mark.parametrize("marker", [0xC3, 0xC5, 0xC7, 0xC9, 0xCB, 0xCC, 0xCF, 0xDC, 0xDE, 0xDF, 0xF0, 0xF7])
def test_a_jpeg_of_a_kind_that_browsers_do_not_show_is_refused(marker: int) -> None:
    assert refused_jpeg(behind_start(GOOD, segment(marker, b"12"))) == "a JPEG of a kind that browsers do not show"


def test_a_jpeg_with_other_samples_than_bytes_or_two_colours_is_refused() -> None:
    for changed in (b"\x0c" + FRAME_SEGMENT[5:], FRAME_SEGMENT[4:9] + b"\2" + FRAME_SEGMENT[10:16], b""):
        given = GOOD.replace(FRAME_SEGMENT, segment(0xC0, changed))
        assert refused_jpeg(given) == "a JPEG of a kind that browsers do not show"


def test_a_jpeg_of_very_many_scans_is_refused() -> None:
    assert checked_jpeg(GOOD[:SCAN] + SCANS * MOST_SCANS + b"\xff\xd9").width == 40
    assert "layers" in refused_jpeg(GOOD[:SCAN] + SCANS * (MOST_SCANS + 1) + b"\xff\xd9")


def test_a_megabyte_of_fill_bytes_takes_no_time() -> None:
    fill = b"\xff" * 900_000
    assert checked_jpeg(behind_start(GOOD, fill)).data == checked_jpeg(GOOD).data
    assert checked_jpeg(GOOD[:-2] + fill + b"\xff\xd9").width == 40
    assert refused_jpeg(GOOD[:-2] + fill) == "a damaged JPEG"


# Anything at all

SEEDS = [PLAIN, png(header(5, 3), MARKED, PIXELS, IEND), jpeg(), jpeg(progressive=True)]


def checked(data: bytes) -> Picture | None:
    """What comes out of each door is a picture of its kind that passes again, unchanged."""
    kept = None
    for check in (checked_png, checked_jpeg):
        try:
            kept = check(data)
        except Refused:
            continue
        assert check(kept.data) == kept
        assert len(kept.data) <= len(data)
    return kept


@settings(max_examples=300)
@given(
    st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_a_picture_with_bytes_changed_is_a_picture_or_refused(data: bytes, changes: list[tuple[int, int]]) -> None:
    spoiled = bytearray(data)
    for place, value in changes:
        spoiled[place % len(data)] = value
    checked(bytes(spoiled))


@settings(max_examples=200)
@given(st.sampled_from(SEEDS), st.integers(0, 1 << 20), st.binary(max_size=40), st.integers(0, 40))
def test_a_picture_cut_or_put_into_is_a_picture_or_refused(data: bytes, place: int, extra: bytes, gone: int) -> None:
    place %= len(data)
    checked(data[:place] + extra + data[place + gone :])
    if place < len(data) - 1:
        assert checked(data[:place]) is None


CHUNKS = st.sampled_from([header(5, 3), PIXELS, IEND, MARKED, chunk(b"PLTE", b"rgb"), chunk(b"tRNS", b"\0\0"), PLAIN])


@settings(max_examples=200)
@given(st.lists(CHUNKS, max_size=8), st.binary(max_size=10))
def test_chunks_in_any_order_are_a_picture_or_refused(chunks: list[bytes], rest: bytes) -> None:
    checked(png(*chunks, rest))
    checked(b"\xff\xd8\xff" + rest)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_picture_or_refused(data: bytes) -> None:
    for start in (b"", SIGNATURE, b"\xff\xd8\xff", b"\xff\xd8" + GOOD[2:SCAN]):
        checked(start + data)
