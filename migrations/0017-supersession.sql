-- 16 -> 17. Rules superseded memories of earlier units whose files a later unit edited: 22 of 24 cases that were read were
-- wrong. Those memories are current again; what a person or a model superseded stays.
UPDATE memories SET superseded_by = NULL
WHERE superseded_by IS NOT NULL AND made_by = 'rules' AND NOT by_hand AND EXISTS (
  SELECT 1 FROM memories n WHERE n.id = memories.superseded_by AND n.made_by = 'rules' AND NOT n.by_hand
    AND n.work_unit_id IS NOT memories.work_unit_id);

-- Marks of the first imports and pauses.
DELETE FROM meta WHERE key IN ('pauses_kept_since', 'unsettled_since');
