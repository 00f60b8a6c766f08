"""Strings as arrays of bytes: hashes, checksums, searches, ciphers, codes, counts."""

import base64
import re
import zlib

import numpy as np
from numpy import int32, uint8, uint32, uint64

from gemmlab import cuda

TEXT = (
    "A reader reads the row; a writer writes the column. Where rows and columns meet, "
    "threads wait for threads, and the last thread to arrive lets the others go. "
)
LONGEST = 16
CRC_TABLE = np.array([zlib.crc32(bytes([255 - i])) ^ 0xFF000000 for i in range(256)], uint32)
PATTERN = np.frombuffer(b"thread", uint8)


def text_bytes(times=1):
    return np.frombuffer((TEXT * times).encode(), uint8).copy()


def packed_words():
    """The words of the text, one after the other, and where each begins."""
    words = [w.encode() for w in re.findall(r"\w+", TEXT)]
    starts = np.cumsum([0, *map(len, words)]).astype(int32)
    return words, np.frombuffer(b"".join(words), uint8), starts


@cuda.jit
def fnv1a(text, starts, hashes):
    w = cuda.grid(1)
    if w < hashes.size:
        h = uint32(2166136261)
        for i in range(starts[w], starts[w + 1]):
            h = uint32((h ^ text[i]) * uint32(16777619))
        hashes[w] = h


def hashes_fnv1a(launch):
    words, text, starts = packed_words()
    hashes, expected = np.zeros(len(words), uint32), []
    launch(fnv1a, 2, 32, text, starts, hashes)
    for word in words:
        h = 2166136261
        for c in word:
            h = (h ^ c) * 16777619 % 2**32
        expected.append(h)
    return hashes, np.array(expected)


@cuda.jit
def djb2(text, starts, hashes):
    w = cuda.grid(1)
    if w < hashes.size:
        h = uint64(5381)
        for i in range(starts[w], starts[w + 1]):
            h = (h << uint64(5)) + h + uint64(text[i])
        hashes[w] = h


def hashes_of_bernstein(launch):
    words, text, starts = packed_words()
    hashes, expected = np.zeros(len(words), uint64), []
    launch(djb2, 2, 32, text, starts, hashes)
    for word in words:
        h = 5381
        for c in word:
            h = (h * 33 + c) % 2**64
        expected.append(h)
    return hashes, np.array(expected, uint64)


@cuda.jit
def crc32_by_table(text, length, out):
    table = cuda.const.array_like(CRC_TABLE)
    t = cuda.grid(1)
    if t < out.size:
        crc = uint32(0xFFFFFFFF)
        for i in range(t * length, min((t + 1) * length, text.size)):
            crc = uint32(table[(crc ^ text[i]) & 0xFF] ^ (crc >> 8))
        out[t] = crc ^ uint32(0xFFFFFFFF)


def checksum_crc32_by_a_table(launch):
    text, out = text_bytes(3), np.zeros(20, uint32)
    launch(crc32_by_table, 1, 32, text, 24, out)
    return out, np.array([zlib.crc32(text[24 * t : 24 * t + 24]) for t in range(20)])


@cuda.jit
def crc32_by_bits(text, length, out):
    t = cuda.grid(1)
    if t < out.size:
        crc = 0xFFFFFFFF
        for i in range(t * length, (t + 1) * length):
            crc ^= text[i]
            for _ in range(8):
                crc = (crc >> 1) ^ (0xEDB88320 & -(crc & 1))
        out[t] = ~crc & 0xFFFFFFFF


def checksum_crc32_by_bits(launch):
    text, out = text_bytes(2), np.zeros(30, uint32)
    launch(crc32_by_bits, 1, 32, text, 10, out)
    return out, np.array([zlib.crc32(text[10 * t : 10 * t + 10]) for t in range(30)])


@cuda.jit
def adler32(text, length, out):
    t = cuda.grid(1)
    if t < out.size:
        a, b = 1, 0
        for i in range(t * length, (t + 1) * length):
            a = (a + text[i]) % 65521
            b = (b + a) % 65521
        out[t] = b << 16 | a


def checksum_adler32(launch):
    text, out = text_bytes(2), np.zeros(30, uint32)
    launch(adler32, 1, 32, text, 10, out)
    return out, np.array([zlib.adler32(text[10 * t : 10 * t + 10]) for t in range(30)])


@cuda.jit
def find_everywhere(text, pattern, found):
    i = cuda.grid(1)
    if i + pattern.size <= text.size:
        for j in range(pattern.size):
            if text[i + j] != pattern[j]:
                break
        else:
            found[i] = True


def substring_at_every_place(launch):
    text = text_bytes()
    found = np.zeros(text.size, np.bool_)
    launch(find_everywhere, 3, 64, text, PATTERN, found)
    return np.flatnonzero(found), np.array([m.start() for m in re.finditer("(?=thread)", TEXT)])


@cuda.jit
def rabin_karp(text, length, wanted, hits):
    t = cuda.grid(1)
    chunk = 16
    first = t * chunk
    if first + length > text.size:
        return
    power = 1
    for _ in range(length - 1):
        power = power * 256 % 1000003
    h = 0
    for i in range(length):
        h = (h * 256 + text[first + i]) % 1000003
    for i in range(first, min(first + chunk, text.size - length + 1)):
        if i > first:
            h = ((h - text[i - 1] * power) * 256 + text[i + length - 1]) % 1000003
        if h == wanted:
            cuda.atomic.add(hits, 0, 1)


def substring_by_rolling_hashes(launch):
    text, hits, wanted = text_bytes(), np.zeros(1, int32), 0
    for c in b"the":
        wanted = (wanted * 256 + c) % 1000003
    launch(rabin_karp, 1, 32, text, 3, wanted, hits)
    return hits[0], TEXT.count("the")


@cuda.jit
def knuth_morris_pratt(texts, pattern, counts):
    t = cuda.grid(1)
    fallback = cuda.local.array(LONGEST, int32)
    m = pattern.size
    fallback[0] = 0
    k = 0
    for i in range(1, m):
        while k > 0 and pattern[i] != pattern[k]:
            k = fallback[k - 1]
        if pattern[i] == pattern[k]:
            k += 1
        fallback[i] = k
    if t < texts.shape[0]:
        k = 0
        count = 0
        for c in texts[t]:
            while k > 0 and c != pattern[k]:
                k = fallback[k - 1]
            if c == pattern[k]:
                k += 1
            if k == m:
                count += 1
                k = fallback[k - 1]
        counts[t] = count


def substring_of_knuth_morris_and_pratt(launch):
    texts = np.random.default_rng(1).integers(97, 99, (40, 60)).astype(uint8)
    pattern, counts = np.frombuffer(b"abaab", uint8), np.full(40, -1)
    launch(knuth_morris_pratt, 2, 32, texts, pattern, counts)
    return counts, np.array([len(re.findall(b"(?=abaab)", t.tobytes())) for t in texts])


@cuda.jit
def caesar(text, shift):
    i = cuda.grid(1)
    if i < text.size:
        c = text[i]
        if 65 <= c <= 90:
            text[i] = (c - 65 + shift) % 26 + 65
        elif ord("a") <= c <= ord("z"):
            text[i] = (c - ord("a") + shift) % 26 + ord("a")


def cipher_of_caesar(launch):
    text = text_bytes()
    launch(caesar, 3, 64, text, -3)
    small, large = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    table = str.maketrans(small + large, small[-3:] + small[:-3] + large[-3:] + large[:-3])
    return text.tobytes().decode(), TEXT.translate(table)


@cuda.jit(device=True)
def is_letter(c):
    return 65 <= c <= 90 or 97 <= c <= 122


@cuda.jit
def count_words(text, words, letters):
    i = cuda.grid(1)
    begins = i < text.size and is_letter(text[i]) and (i == 0 or not is_letter(text[i - 1]))
    own = cuda.syncthreads_count(int(begins))
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(words, 0, own)
    if i < text.size and is_letter(text[i]):
        cuda.atomic.add(letters, (text[i] | 32) - 97, 1)


def words_and_letters_counted(launch):
    text, words, letters = text_bytes(), np.zeros(1, int32), np.zeros(26, int32)
    launch(count_words, 3, 64, text, words, letters)
    counts = [TEXT.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"]
    return [(words[0], len(re.findall("[A-Za-z]+", TEXT))), (letters, np.array(counts))]


@cuda.jit
def palindromes(text, starts, out):
    w = cuda.grid(1)
    if w < out.size:
        i, j = starts[w], starts[w + 1] - 1
        same = True
        while same and i < j:
            same = text[i] == text[j]
            i += 1
            j -= 1
        out[w] = same


def palindromes_among_numbers(launch):
    words = [str(n).encode() for n in range(80, 240, 3)]
    starts = np.cumsum([0, *map(len, words)])
    out = np.zeros(len(words), np.bool_)
    launch(palindromes, 2, 32, np.frombuffer(b"".join(words), uint8), starts, out)
    return out, np.array([w == w[::-1] for w in words])


@cuda.jit
def to_base64(data, alphabet, out):
    i = cuda.grid(1)
    if 3 * i < data.size:
        bits = (data[3 * i] << 16) | (data[3 * i + 1] << 8) | data[3 * i + 2]
        for k in range(4):
            out[4 * i + k] = alphabet[(bits >> (18 - 6 * k)) & 63]


def code_base64(launch):
    data = np.random.default_rng(2).integers(0, 256, 150).astype(uint8)
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    out = np.zeros(200, uint8)
    launch(to_base64, 2, 32, data, np.frombuffer(letters, uint8), out)
    return out.tobytes(), base64.b64encode(data.tobytes())


@cuda.jit
def parse(text, width, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    value, sign = 0, 1
    for k in range(width):
        c = text[i * width + k]
        if c == 45:
            sign = -1
        elif 48 <= c <= 57:
            value = 10 * value + (c - 48)
    out[i] = sign * value


def numbers_read(launch):
    numbers = np.random.default_rng(3).integers(-9999, 9999, 70)
    text = np.frombuffer("".join(f"{n:>6}" for n in numbers).encode(), uint8)
    out = np.full(70, 123456)
    launch(parse, 3, 32, text, 6, out)
    return out, numbers


@cuda.jit
def bracket_depths(text, depth):
    row = cuda.grid(1)
    if row < text.shape[0]:
        level = deepest = 0
        for c in text[row]:
            if c == ord("("):
                level += 1
                deepest = max(deepest, level)
            elif c == ord(")"):
                level -= 1
                if level < 0:
                    break
        depth[row] = deepest if level == 0 else -1


def brackets_balanced(launch):
    rng = np.random.default_rng(4)
    text = np.where(rng.random((60, 6)) < 0.5, ord("("), ord(")")).astype(uint8)
    depth, expected = np.full(60, -9), []
    launch(bracket_depths, 2, 32, text, depth)
    for row in text:
        levels = np.cumsum(np.where(row == ord("("), 1, -1))
        expected.append(levels.max() if levels[-1] == 0 and levels.min() >= 0 else -1)
    return depth, np.array(expected)
