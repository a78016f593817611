// IDs of firn as primary keys in PostgreSQL, with Hibernate. The functions firn_first and firn_last are those of
// firn gen sql --dialect postgres. For Hibernate 6 and Spring see ../README.md.
import io.github.firnid.client.FirnClient;
import io.github.firnid.client.Sequencer;
import java.io.Serializable;
import java.sql.Timestamp;
import java.util.List;
import java.util.stream.Collectors;
import javax.persistence.Column;
import javax.persistence.Entity;
import javax.persistence.GeneratedValue;
import javax.persistence.Id;
import javax.persistence.Table;
import org.hibernate.Session;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.cfg.Configuration;
import org.hibernate.engine.SessionImplementor;
import org.hibernate.id.IdentifierGenerator;

public class Orders {
    /** A row. Without {@code @GeneratedValue} the program would set the ID. */
    @Entity(name = "Order_")
    @Table(name = "orders")
    public static class Order {
        @Id
        @GeneratedValue(generator = "firn")
        @GenericGenerator(name = "firn", strategy = "Orders$FirnIDs")
        Long id; // null: it is not stored yet

        @Column(nullable = false) String item;

        Order() {}

        Order(String item) {
            this.item = item;
        }

        /** The ID is a string: a browser's numbers would lose digits. Jackson does so for ToStringSerializer.class. */
        String toJSON() {
            return "{\"id\":\"" + id + "\",\"item\":\"" + item + "\"}";
        }
    }

    /** Gives each new order its ID. Hibernate makes the generator, so what it needs is static. */
    public static class FirnIDs implements IdentifierGenerator {
        static Sequencer ids;

        @Override public Serializable generate(SessionImplementor session, Object order) { return ids.next(); }
    }

    public static void main(String[] arguments) throws Exception {
        try (var firn = new FirnClient(List.of(System.getenv("FIRN_URL")))) {
            FirnIDs.ids = firn.sequencer();
            run();
        }
    }

    static void run() throws Exception {
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

    static void insert(Session session, String... items) {
        session.beginTransaction();
        for (var item : items) session.persist(new Order(item));
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
