package io.github.firnid.client;

/**
 * Writes IDs as text and reads them back. Each ID has one text; anything else is refused. Hex (16 characters), base 32 (13,
 * Crockford's) and base 62 (11) sort as the numbers do. Decimal and base 58 (Bitcoin's) have as few characters as possible. Checked is decimal, a
 * hyphen and two check digits (ISO 7064 MOD 97-10): no text in which one digit is wrong, or two are exchanged, is read.
 */
public enum Encoding {
    DECIMAL(1, "0123456789"),
    HEX(16, "0123456789abcdef"),
    BASE32(13, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
    BASE58(1, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
    BASE62(11, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
    CHECKED(1, "0123456789");

    private static final String FLOAT = "(?=.*[.eE])\\d+(\\.\\d*)?([eE][+-]?\\d+)?"; // what a program writes of one
    private final int width; // of every text; 1: as short as possible
    private final String alphabet;

    Encoding(int width, String alphabet) {
        this.width = width;
        this.alphabet = alphabet;
    }

    /** Returns the text of an ID. An IllegalArgumentException is thrown when it is negative. */
    public String encode(long id) {
        FirnClient.require(id >= 0, "%d is not an ID: it is negative", id);
        var text = new StringBuilder();
        for (long n = id; n > 0 || text.length() < width; n /= alphabet.length()) {
            text.append(alphabet.charAt((int) (n % alphabet.length())));
        }
        text.reverse();
        return this == CHECKED ? text + String.format("-%02d", 98 - id % 97 * 100 % 97) : text.toString();
    }

    /** Returns the ID of a text as {@link #encode} writes it. An IllegalArgumentException is thrown for any other. */
    public long parse(String text) {
        FirnClient.require(this != DECIMAL || !text.matches(FLOAT), "\"%.40s\" is a floating-point number, whose last digits may be lost; "
                + "want all digits, such as 117465411174400005", text);
        String number = this == CHECKED ? text.replaceFirst("-[0-9]{2}$", "") : text;
        long id = 0;
        for (int i = 0; i < number.length() && id >= 0; i++) {
            int digit = alphabet.indexOf(number.charAt(i));
            id = digit < 0 || id > (Long.MAX_VALUE - digit) / alphabet.length() ? -1 : id * alphabet.length() + digit;
        }
        FirnClient.require(number.equals(text) || !number.equals(Long.toString(id)) || encode(id).equals(text),
                "\"%.40s\" has check digits that do not fit its number; want the text exactly as it was made", text);
        FirnClient.require(id >= 0 && encode(id).equals(text), "\"%.40s\" is not an ID in %s", text, this);
        return id;
    }
}
