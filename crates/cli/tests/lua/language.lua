-- The language, whose output is compared with that of the same file run by the computer's own Lua or, without one, with what
-- stands in the test.
local lines = {}

local function say(...)
  local words = table.pack(...)
  for at = 1, words.n do words[at] = tostring(words[at]) end
  lines[#lines + 1] = table.concat(words, " ")
end

local Lamp = {}
Lamp.__index = Lamp
Lamp.__add = function(one, two) return one.watts + two.watts end
Lamp.__tostring = function(lamp) return lamp.watts .. " W" end
Lamp.__close = function(lamp) say("closed", lamp) end
local function lamp(watts) return setmetatable({ watts = watts }, Lamp) end

return function()
  lines = {}
  say(7 // 2, 7 % -3, 7 / 2, 2 ^ 10, 3 | 4, ~0, 1 << 62, "10" + 5, 10 == 10.0, math.maxinteger + 1 == math.mininteger)
  say(0.1, 1e15, 1e100, -0.0, 1 / 0, 2 ^ 53, 3.0, math.tointeger(3.0), 100 // 1e-1)
  say(math.floor(-2.5), math.ceil(2.1), math.sqrt(2) * math.sqrt(2) == 2, math.sin(1) ^ 2 + math.cos(1) ^ 2, math.fmod(7, 3))
  say(string.format("%5.2f|%-5d|%05d|%x|%g|%s|%q", 3.14159, 42, 42, 255, 1e20, "s", "q\n"))
  say(("hello world"):find("o w"), ("hello"):sub(-3), ("abc"):rep(2, "-"), ("x=1, y=2"):gsub("(%w)=(%w)", "%2=%1"))
  for key, value in ("a=1, b=2"):gmatch("(%w)=(%w)") do say(key, value) end
  say(#"äöü", utf8.len("äöü"), utf8.char(228), select("#", 1, nil, nil), tostring(nil))
  say(lamp(40) + lamp(2), tostring(lamp(60)), rawequal(Lamp, Lamp), getmetatable(lamp(1)) == Lamp)
  do
    local first <close> = lamp(1)
    local second <const> = 2
    say("open", first, second)
  end
  local ok, message = pcall(function() local one <close> = lamp(3) error("out", 0) end)
  say(ok, message)
  say(pcall(error), select(2, pcall(error, { 1 }))[1], xpcall(error, function(it) return it .. "!" end, "x"))
  local sum = 0
  for step = 10, 1, -3 do sum = sum + step end
  for _, value in ipairs { 1, 2, nil, 4 } do sum = sum + value end
  say(sum, #{ 1, 2, 3 }, next({}), table.unpack({ 1, 2, 3 }, 2))
  local sorted = { 5, 2, 8, 1 }
  table.sort(sorted, function(one, two) return one > two end)
  say(table.concat(sorted, ","), table.remove(sorted), table.concat(table.move(sorted, 1, 2, 2), ","))
  local generator = coroutine.wrap(function(first)
    local given = coroutine.yield(first + 1)
    say("given", given)
    return "done"
  end)
  say(generator(1), generator("x"))
  local thread = coroutine.create(function() error("in it", 0) end)
  say(coroutine.resume(thread), coroutine.status(thread))
  local counter = 0
  ::again::
  counter = counter + 1
  if counter < 3 then goto again end
  say(counter, string.pack("<i4", 7):byte(1, -1))
  local deep = {}
  for round = 1, 100 do deep = setmetatable({ round }, { __index = deep }) end
  say(deep[1], deep[2], tostring(1e15), 2 ^ 31 | 0, math.type(1), math.type(1.0), tonumber("0x1p4"), tonumber("z", 36))
  return table.concat(lines, "\n")
end
