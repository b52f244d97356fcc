local name = ...
local other = {}

function other.name() return name end

function other.fail()
  error("elsewhere")
end

return other
