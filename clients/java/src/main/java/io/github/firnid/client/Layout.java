package io.github.firnid.client;

import static io.github.firnid.client.FirnClient.require;
import static java.lang.Integer.parseInt;

import java.nio.charset.StandardCharsets;
import java.time.*;
import java.util.*;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * How the bits of an ID are split, from the highest on: time, datacenter, node, sequence; with the node lowest: time, sequence,
 * datacenter, node. Tick 0 begins at the epoch, in 1970 or later. A tick is 1 ns to 1 s; time has 1 to 62 bits, all have up to 63.
 */
public record Layout(
        Instant epoch, Duration tick, int timeBits, int datacenterBits, int nodeBits, int sequenceBits, boolean nodeLowest) {
    private static final Pattern BITS = Pattern.compile("(\\d\\d?)/(?:(\\d\\d?)/)?(\\d\\d?)/(\\d\\d?)(?:@(\\d{1,10})(ns|us|ms|s))?");

    private static final String DIGITS = "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})";
    private static final Pattern UUID_TEXT =
            Pattern.compile("(?:urn:uuid:)?" + DIGITS + "|\\{" + DIGITS + "\\}|([0-9a-f]{32})", Pattern.CASE_INSENSITIVE);

    /** The fields of an ID, and when its tick begins. The node ID is the number in the datacenter and node fields together. */
    public record Parts(Instant time, long tick, long datacenter, long node, long nodeId, long sequence) {}

    public Layout {
        boolean small = (timeBits | datacenterBits | nodeBits | sequenceBits) >>> 6 == 0 && timeBits >= 1 && timeBits <= 62;
        require(small && timeBits + datacenterBits + nodeBits + sequenceBits <= 63,
                "layout of %d/%d/%d/%d bits; want 1 to 62 of time, 63 in all", timeBits, datacenterBits, nodeBits, sequenceBits);
        boolean known = tick.toNanos() >= 1 && tick.toNanos() <= 1_000_000_000 && !epoch.isBefore(Instant.EPOCH);
        require(known, "layout with a tick of %s and the epoch %s; want 1 ns to 1 s, and 1970 or later", tick, epoch);
        end(epoch, tick, timeBits); // throws a DateTimeException beyond Instant.MAX
    }

    /** When the time bits run out. */
    private static Instant end(Instant epoch, Duration tick, int timeBits) { return epoch.plus(tick.multipliedBy(1L << timeBits)); }

    /** Returns a preset, such as twitter, or bits such as 41/10/12, 41/5/5/12 or 39/16/8@10ms with the epoch of the default. */
    public static Layout of(String text) {
        return switch (text) {
            case "twitter" -> of("41/5/5/12", "2010-11-04T01:42:54.657Z", false);
            case "discord" -> of("41/5/5/12", "2015-01-01T00:00:00Z", false);
            case "instagram" -> of("40/13/10", "2011-08-24T21:07:01.721Z", false);
            case "sonyflake" -> of("39/16/8@10ms", "2014-09-01T00:00:00Z", true);
            case "snowcast" -> of("40/13/10", "2014-01-01T00:00:00Z", false);
            case "javascript" -> of("41/5/7");
            default -> of(text.equals("default") ? "41/10/12" : text, "2026-01-01T00:00:00Z", false);
        };
    }

    private static Layout of(String text, String epoch, boolean nodeLowest) {
        var m = BITS.matcher(text);
        require(m.matches(), "layout \"%.40s\"; want a preset, or bits such as 41/10/12, 41/5/5/12 or 39/16/8@10ms", text);
        long unit = Map.of("ns", 1L, "us", 1_000L, "ms", 1_000_000L, "s", 1_000_000_000L).get(m.group(6) == null ? "ms" : m.group(6));
        var tick = Duration.ofNanos(m.group(5) == null ? unit : Long.parseLong(m.group(5)) * unit);
        int datacenter = m.group(2) == null ? 0 : parseInt(m.group(2)), node = parseInt(m.group(3));
        return new Layout(Instant.parse(epoch), tick, parseInt(m.group(1)), datacenter, node, parseInt(m.group(4)), nodeLowest);
    }

    /** Splits an ID into its fields. An IllegalArgumentException is thrown when it is not of this layout. */
    public Parts decode(long id) {
        int nodeIdBits = datacenterBits + nodeBits, low = nodeIdBits + sequenceBits;
        require(id >= 0 && id >>> low >>> timeBits == 0, "%d is not an ID of the layout %s", id, this);
        long number = id >>> low, node = field(id, nodeLowest ? 0 : sequenceBits, nodeIdBits);
        long sequence = field(id, nodeLowest ? nodeIdBits : 0, sequenceBits);
        return new Parts(epoch.plus(tick.multipliedBy(number)), number, node >> nodeBits, field(node, 0, nodeBits), node, sequence);
    }

    /**
     * Returns the smallest ID that any node can make in the tick that holds a time, for queries of a range of time. An
     * IllegalArgumentException is thrown when the layout has no IDs for the time. The IDs of a sequencer that scatters them do not
     * lie in the order of their time.
     */
    public long first(Instant time) {
        Instant end = end(epoch, tick, timeBits);
        require(!time.isBefore(epoch) && time.isBefore(end),
                "%s is outside the layout's lifetime; want a time from %s on, before %s", time, epoch, end);
        return Duration.between(epoch, time).dividedBy(tick) << datacenterBits + nodeBits + sequenceBits;
    }

    /** Returns the greatest ID that any node can make in that tick. Exceptions are those of {@link #first}. */
    public long last(Instant time) { return first(time) | (1L << datacenterBits + nodeBits + sequenceBits) - 1; }

    private static long field(long id, int shift, int bits) { return id >>> shift & (1L << bits) - 1; }

    /** Returns what a sequencer that scatters its IDs has made this one of, for {@link #decode}. */
    public static long gather(long id) {
        for (int i = 0; i < 2; i++) id = (id ^ id >>> 32) * 2812876173790338467L & Long.MAX_VALUE;
        return id ^ id >>> 32;
    }

    /** Writes an ID of the default sequencer as a UUID, as {@link #toUuid(long, String)}. */
    public UUID toUuid(long id) { return toUuid(id, "default"); }

    /**
     * Writes an ID of this layout as a UUID of version 7, which sorts as the ID, with the tag of the sequencer that made it, as
     * nodes do. An IllegalArgumentException is thrown for others.
     */
    public UUID toUuid(long id, String sequencer) {
        long ms = decode(id).time.toEpochMilli();
        require(ms >>> 48 == 0, "%d has no UUID: its time is too late", id);
        return new UUID(ms << 16 | 7 << 12 | tag(sequencer) << 1 | id >>> 62, Long.MIN_VALUE | id & (1L << 62) - 1);
    }

    private static final int TAGS = 2047;

    /** Returns the tag of a sequencer's name in a UUID: 0 to 2047. firn's uuid.go explains it. */
    private static long tag(String sequencer) {
        require(sequencer != null, "the sequencer is null; want its name");
        if (sequencer.isEmpty() || sequencer.equals("default")) return 0;
        int hash = 0x811c9dc5;
        for (byte b : sequencer.getBytes(StandardCharsets.UTF_8)) hash = (hash ^ b & 0xff) * 16777619;
        return 1 + Integer.remainderUnsigned(hash, TAGS);
    }

    /** Returns the ID of a UUID of this layout, of any sequencer. An IllegalArgumentException is thrown for any other. */
    public long fromUuid(UUID uuid) {
        long id = idOf(uuid), plain = uuid.getMostSignificantBits() & ~((long) TAGS << 1);
        require(toUuid(id).equals(new UUID(plain, uuid.getLeastSignificantBits())), "%s is not a UUID of an ID of the layout %s", uuid, this);
        return id;
    }

    /** Returns the ID of a UUID of this layout and a sequencer. An IllegalArgumentException is thrown for any other. */
    public long fromUuid(UUID uuid, String sequencer) {
        long id = idOf(uuid);
        require(toUuid(id, sequencer).equals(uuid), "%s is not a UUID of an ID of the layout %s and the sequencer %s", uuid, this, sequencer);
        return id;
    }

    private static long idOf(UUID uuid) {
        return (uuid.getMostSignificantBits() & 1) << 62 | uuid.getLeastSignificantBits() & (1L << 62) - 1;
    }

    /** Does the same for the text of a UUID, which may be without hyphens, in braces, or behind urn:uuid:, and in either case. */
    public long fromUuid(String uuid) {
        var m = UUID_TEXT.matcher(uuid);
        require(m.matches(), "\"%.60s\" is not a UUID; want one such as 01a1fc23-5529-7000-81a1-522b4a720005", uuid);
        String digits = Stream.of(m.group(1), m.group(2), m.group(3)).filter(Objects::nonNull).findFirst().get().replace("-", "");
        return fromUuid(new UUID(Long.parseUnsignedLong(digits, 0, 16, 16), Long.parseUnsignedLong(digits, 16, 32, 16)));
    }
}
