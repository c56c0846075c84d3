#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Draws `layover top --lab` as PNG: the terminal of the tests, its cells painted. Usage: screenshots.py FOLDER"""
import os
import sys
import time

from PIL import Image, ImageDraw, ImageFont

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TOP, "tests", "tui"))
from conftest import terminal  # noqa: E402

FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono"
WIDTH, HEIGHT, SIZE = 9, 18, 15
BACKGROUND, FOREGROUND = "#16191d", "#c8ccd0"
NAMED = {"default": FOREGROUND, "black": "#000000", "red": "#d75f5f", "green": "#87af5f", "brown": "#d7af5f",
         "blue": "#5f87d7", "magenta": "#af87d7", "cyan": "#5fafaf", "white": "#d0d0d0"}
EIGHTHS = "▁▂▃▄▅▆▇█"
LEFT = "▏▎▍▌▋▊▉"


def colour(name, default):
    if name == "default":
        return default
    return NAMED.get(name) or "#" + name


def paint_cell(draw, fonts, x, y, cell):
    front, back = colour(cell.fg, FOREGROUND), colour(cell.bg, BACKGROUND)
    if cell.reverse:
        front, back = back, front
    box = (x * WIDTH, y * HEIGHT, (x + 1) * WIDTH - 1, (y + 1) * HEIGHT - 1)
    draw.rectangle(box, fill=back)
    if cell.data in EIGHTHS:  # fonts leave gaps between blocks
        part = HEIGHT * (EIGHTHS.index(cell.data) + 1) // 8
        draw.rectangle((box[0], box[3] - part + 1, box[2], box[3]), fill=front)
    elif cell.data in LEFT:
        part = max(1, WIDTH * (LEFT.index(cell.data) + 1) // 8)
        draw.rectangle((box[0], box[1], box[0] + part - 1, box[3]), fill=front)
    elif cell.data.strip():
        draw.text((box[0], box[1]), cell.data, fill=front, font=fonts[bool(cell.bold)])


def paint(term, path):
    screen = term.screen
    image = Image.new("RGB", (screen.columns * WIDTH, screen.lines * HEIGHT), BACKGROUND)
    draw = ImageDraw.Draw(image)
    fonts = [ImageFont.truetype(FONTS + kind, SIZE) for kind in (".ttf", "-Bold.ttf")]
    for y in range(screen.lines):
        for x in range(screen.columns):
            paint_cell(draw, fonts, x, y, screen.buffer[y][x])
    image.quantize(64).save(path, optimize=True)


def watch(term, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        term.read()


def main(folder):
    os.makedirs(folder, exist_ok=True)

    def shot(name):
        paint(term, os.path.join(folder, name + ".png"))

    with terminal("--lab", "-d", "0.5", "-s", "p50", columns=100, lines=28) as term:
        term.wait("nagle", 30)
        watch(term, 6)
        shot("flows")
        term.press("2")
        watch(term, 1)
        shot("stages")
        term.press("3")
        watch(term, 1)
        shot("cpus")
        term.press("4")
        watch(term, 1)
        shot("events")
        term.press("1", "down", "enter")
        watch(term, 40)
        shot("split")
        term.press("2")
        watch(term, 1)
        shot("heatmap")
        term.press("4")
        watch(term, 1)
        shot("slowest")
        term.press("enter")
        watch(term, 1)
        shot("trip")
        term.press("esc")
        watch(term, 0.2)
        term.press("esc")
        watch(term, 0.2)
        term.press("home", "enter", "6")
        watch(term, 4)
        shot("cause")


main(sys.argv[1])
