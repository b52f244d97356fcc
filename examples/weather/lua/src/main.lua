-- Keeps what the thermometer says, and compares it with the thermostat.

local tenure = require "tenure"
local tree = tenure.tree

-- The readings that are kept.
local READINGS = 4

local function kept()
  local readings = {}
  for degrees in (tree.get("history") or ""):gmatch("%S+") do
    readings[#readings + 1] = degrees
  end
  return readings
end

function entry()
  tenure.events.subscribe("device.temperature", on_temperature, "latest-only")
  tenure.timers.every(1000, on_compare)
end

-- tenure call weather report
function report()
  local history = tree.get("history")
  return history and history .. ": " .. (tree.get("verdict") or "not compared yet") or "no reading yet"
end

-- The thermometer's reading comes as a call. One like the last is no news.
function on_temperature(degrees)
  local readings = kept()
  if readings[#readings] == degrees then return end
  readings[#readings + 1] = degrees
  if #readings > READINGS then table.remove(readings, 1) end
  tree.set("history", table.concat(readings, " "))
end

-- The timer's call.
function on_compare()
  local readings = kept()
  if #readings == 0 then return end
  local target = tenure.call("thermostat", "read")
  local word = tonumber(readings[#readings]) < tonumber(target) and "colder" or "warmer"
  local verdict = word .. " than " .. target
  if tree.get("verdict") ~= verdict then tree.set("verdict", verdict) end
end
