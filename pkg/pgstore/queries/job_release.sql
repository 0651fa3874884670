UPDATE jobs SET lease_owner = '', lease_until = '-infinity' WHERE id = $1 AND fence = $2
