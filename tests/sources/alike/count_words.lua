-- The tool as a Lua module.
return {
  name = "count_words",
  description = "Zählt Wörter — 数える.",
  system_prompt = "Count before you cut.",
  input_schema = {
    type = "object",
    properties = {text = {type = "string"}, unique = {type = "boolean"}},
    required = {"text"},
  },
  execute = function(input)
    local count, seen, first = 0, {}, nil
    for word in input.text:gmatch("%S+") do
      first = first or word
      if not (input.unique and seen[word]) then count = count + 1 end
      seen[word] = true
    end
    if first == "fail" then return "I cannot count “that”.", true end
    if first == "crash" then return string.rep("x", 2 ^ 30) end
    while first == "hang" do end
    return count .. " words: " .. input.text
  end,
}
