// IDs of firn as primary keys in PostgreSQL, with Hibernate. The functions firn_first and firn_last are those of
// firn gen sql --dialect postgres. Since Hibernate 6 the annotations are in jakarta.persistence.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.sql.Timestamp;
import java.util.List;
import java.util.stream.Collectors;
import javax.persistence.Column;
import javax.persistence.Entity;
import javax.persistence.Id;
import javax.persistence.Table;
import org.hibernate.Session;
import org.hibernate.cfg.Configuration;

public class Orders {
    /** A row. Without {@code @GeneratedValue} Hibernate takes the ID that it is given. */
    @Entity(name = "Order_")
    @Table(name = "orders")
    public static class Order {
        @Id long id;
        @Column(nullable = false) String item;

        Order() {}

        Order(long id, String item) {
            this.id = id;
            this.item = item;
        }

        /** The ID is a string: a browser's numbers would lose digits. Jackson does so for ToStringSerializer.class. */
        String toJSON() {
            return "{\"id\":\"" + id + "\",\"item\":\"" + item + "\"}";
        }
    }

    /** Returns a new ID, which comes as 8 bytes. */
    static long nextID() throws Exception {
        var request = HttpRequest.newBuilder(URI.create(System.getenv("FIRN_URL") + "/api/v1/id"))
                .header("Accept", "application/octet-stream")
                .POST(HttpRequest.BodyPublishers.noBody());
        var answer = HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofByteArray());
        if (answer.statusCode() != 200) throw new Exception("no ID: " + new String(answer.body()));
        return ByteBuffer.wrap(answer.body()).getLong();
    }

    public static void main(String[] arguments) throws Exception {
        var factory = new Configuration()
                .addAnnotatedClass(Order.class)
                .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
                .setProperty("hibernate.connection.url", System.getenv("JDBC_URL"))
                .setProperty("hibernate.connection.username", System.getenv("PGUSER"))
                .setProperty("hibernate.hbm2ddl.auto", "create") // creates the table
                .buildSessionFactory();
        var session = factory.openSession();

        insert(session, "tea", "milk", "sugar");
        Thread.sleep(50);
        var since = new Timestamp(System.currentTimeMillis());
        Thread.sleep(50);
        insert(session, "bread", "butter", "jam");

        // The orders of a time are a range of the primary key.
        var recent = list(session
                .createQuery("from Order_ where id between firn_first(:since) and firn_last(:now) order by id")
                .setParameter("since", since)
                .setParameter("now", new Timestamp(System.currentTimeMillis())));
        show("since", recent);

        // The next page begins after the last order of this one.
        for (long after = 0; ; ) {
            var page = list(session
                    .createQuery("from Order_ where id > :after order by id")
                    .setParameter("after", after)
                    .setMaxResults(2));
            if (page.isEmpty()) break;
            show("page", page);
            after = page.get(page.size() - 1).id;
        }

        // Out to a browser, and back.
        var out = recent.get(0).toJSON();
        System.out.println("json: " + out);
        long back = Long.parseLong(out.split("\"")[3]);
        session.clear();
        show("back", List.of((Order) session.get(Order.class, back)));

        session.close();
        factory.close();
    }

    static void insert(Session session, String... items) throws Exception {
        session.beginTransaction();
        for (var item : items) session.persist(new Order(nextID(), item));
        session.getTransaction().commit();
    }

    @SuppressWarnings("unchecked")
    static List<Order> list(org.hibernate.Query query) {
        return query.list();
    }

    static void show(String what, List<Order> orders) {
        System.out.println(what + ": " + orders.stream().map(order -> order.item).collect(Collectors.joining(" ")));
    }
}
