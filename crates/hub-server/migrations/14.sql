-- An alarm of a rule may be on the hub itself, with no device: one for each owner.
DROP INDEX rule_alarms_open;
CREATE UNIQUE INDEX rule_alarms_open ON rule_alarms (rule, device) WHERE state <> 'over' AND device <> '';
CREATE UNIQUE INDEX rule_alarms_on_the_hub ON rule_alarms (rule, owner) WHERE state <> 'over' AND device = '';
