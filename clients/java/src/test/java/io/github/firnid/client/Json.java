package io.github.firnid.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** As much of JSON as tests need: objects, lists, strings, whole numbers, true, false and null. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) { this.text = text; }

    static Object parse(String text) {
        var json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at < text.length()) throw new IllegalArgumentException("more than one value at " + json.at + ": " + text);
        return value;
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(e -> write(e.getKey()) + ":" + write(e.getValue())).collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List<?> list) return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
        if (!(value instanceof String string)) return String.valueOf(value);
        var quoted = new StringBuilder("\"");
        string.chars().forEach(c -> quoted.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", c) : Character.toString(c)));
        return quoted.append('"').toString();
    }

    private Object value() {
        space();
        char c = text.charAt(at);
        if (c == '{') {
            var map = new LinkedHashMap<String, Object>();
            for (at++; !ends('}'); ) {
                String key = string();
                space();
                at++; // the colon
                map.put(key, value());
            }
            return map;
        }
        if (c == '[') {
            var list = new ArrayList<>();
            for (at++; !ends(']'); ) list.add(value());
            return list;
        }
        if (c == '"') return string();
        int from = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
        String word = text.substring(from, at);
        return switch (word) {
            case "true", "false" -> Boolean.valueOf(word);
            case "null" -> null;
            default -> Long.valueOf(word);
        };
    }

    private boolean ends(char end) {
        space();
        if (text.charAt(at) == ',') {
            at++;
            space();
        }
        if (text.charAt(at) != end) return false;
        at++;
        return true;
    }

    private String string() {
        var string = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c == '\\') {
                c = text.charAt(++at);
                if (c == 'u') {
                    c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                    at += 4;
                } else if ("nrtbf".indexOf(c) >= 0) {
                    c = "\n\r\t\b\f".charAt("nrtbf".indexOf(c));
                }
            }
            string.append(c);
        }
        at++;
        return string.toString();
    }

    private void space() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) at++;
    }
}
