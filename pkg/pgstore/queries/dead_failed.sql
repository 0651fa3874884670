-- The newest version has failed, or not, or is taken up again. An overtaken one failed if this letter did it.
SELECT CASE WHEN d.version = $2 THEN d.status = 'Failed' ELSE l.failed END
FROM documents d, dead_letters l
WHERE d.key = $1 AND d.version >= $2 AND d.kb_id = $3 AND l.source = $4
