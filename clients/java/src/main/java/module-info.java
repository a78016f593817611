/** Takes IDs from the nodes of a firn service. */
module io.github.firnid.client {
    requires java.net.http;
    exports io.github.firnid.client;
}
