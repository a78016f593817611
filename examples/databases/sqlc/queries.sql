-- name: Insert :exec
INSERT INTO orders (id, item) VALUES ($1, $2);

-- name: Get :one
SELECT * FROM orders WHERE id = $1;

-- name: Between :many
SELECT * FROM orders WHERE id BETWEEN sqlc.arg(first) AND sqlc.arg(last) ORDER BY id;

-- name: Page :many
SELECT * FROM orders WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(rows);
