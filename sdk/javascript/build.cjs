// Makes a machine's program of a project's JavaScript: node build.cjs OUTPUT.c ENTRY TYPESCRIPT COMPILER.wasm
//
// Each file, and what it imports, goes through TypeScript, which writes today's language in that of 2009; each token stays in
// its line, so that a fault's line is the source's. All files together go through the engine's compiler (compile.c). OUTPUT.c
// holds the bytecode, where each file begins in it, and a function for each that the entry exports.
"use strict";

const fs = require("fs");
const path = require("path");

const [output, entry, typescript, compiler] = process.argv.slice(2);
const ts = require(typescript);

/** How this ends if the project has a mistake, whose words are then all that was said. */
const MISTAKE = 3;

/** A mistake in the project, at a place in a file. */
class Mistake extends Error {
  constructor(file, line, column, words) {
    super(column === undefined ? `${file}:${line}: ${words}` : `${file}:${line}:${column}: ${words}`);
  }
}

/** The names that scripts of browsers and of Node.js find, and what stands in for them here. */
const ELSEWHERE = {
  setTimeout: "timers.after calls an exported function later",
  setInterval: "timers.every calls an exported function again and again",
  fetch: 'call("https://…", "GET") asks a server, as far as the lease grants it',
  Promise: "a call waits for its result, while other machines run",
  Map: "an object holds values by their names",
  Set: "an object holds values by their names",
  WeakMap: "there is none",
  WeakSet: "there is none",
  Symbol: "there are none",
  Proxy: "there are none",
  Reflect: "there is none",
  Intl: "there is none",
  eval: "all code is compiled when the machine is built",
  require: "import takes files of the project and what they export",
  process: "machines have no process",
  Buffer: "Uint8Array holds bytes",
  TextEncoder: "the tree, calls and events take texts and Uint8Array alike",
  TextDecoder: "the tree, calls and events take texts and Uint8Array alike",
};

/** What "tenure" has, by the description that editors read: each name, and the names in it if it is an object. */
function described() {
  const file = path.join(__dirname, "tenure.d.ts");
  const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const module = source.statements.find((it) => ts.isModuleDeclaration(it) && it.name.text === "tenure");
  const [names, types] = [new Map(), new Set()];
  for (const statement of module.body.statements) {
    if (ts.isFunctionDeclaration(statement)) names.set(statement.name.text, undefined);
    if (ts.isTypeAliasDeclaration(statement)) types.add(statement.name.text);
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name, type } of statement.declarationList.declarations) {
      names.set(name.text, new Set(type.members.map((it) => it.name.text)));
    }
  }
  return { names, types };
}

/** How many letters must be put in, left out or changed to make one word of the other. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at++) {
    const before = row;
    row = [at];
    for (let to = 1; to <= other.length; to++) {
      const isSame = one[at - 1].toLowerCase() === other[to - 1].toLowerCase();
      row.push(Math.min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (isSame ? 0 : 1)));
    }
  }
  return row[other.length];
}

/** The words about a name that isn't among `names`: the likeliest one, or all of them. */
function absent(name, where, names) {
  const plain = (text) => text.replace(/_/g, "");
  const near = names.map((it) => [distance(plain(name), plain(it)), it]).sort((one, other) => one[0] - other[0])[0];
  const begins = names.find((it) => it.startsWith(name) || name.startsWith(it));
  const meant = near !== undefined && near[0] <= Math.max(1, name.length / 3) ? near[1] : begins;
  const advice = meant !== undefined ? `did you mean ${meant}?` : `it has ${names.length === 0 ? "nothing" : names.join(", ")}`;
  return `${where} has no ${name}; ${advice}`;
}

/** What the engine hasn't, by the kind of the node; else undefined. */
function refusal(node) {
  const has = (flag) => (ts.getCombinedModifierFlags(node) & flag) !== 0;
  const waits = "a call waits for its result by itself, and other machines run meanwhile: leave async and await out";
  if (ts.isAwaitExpression(node)) return waits;
  if (ts.isFunctionLike(node) && has(ts.ModifierFlags.Async)) return waits;
  if (node.asteriskToken !== undefined && ts.isFunctionLike(node)) return "there are no generators; return an array";
  if (ts.isPrivateIdentifier(node)) return "there are no private names; variables of a file are seen by nobody else";
  if (node.kind === ts.SyntaxKind.BigIntLiteral) return "there are no integers of any length (BigInt)";
  if (node.kind === ts.SyntaxKind.ImportKeyword && ts.isCallExpression(node.parent)) return "import stands at the top alone";
  if (ts.isExportAssignment(node) || has(ts.ModifierFlags.Default)) return "export functions by their names; no default is called";
  if (ts.isExportDeclaration(node) && node.exportClause === undefined) return "name what is exported; * isn't taken";
  return undefined;
}

/** Whether a name is used as a variable that the file doesn't declare. */
function isFree(node, declared) {
  const parent = node.parent;
  if (declared.has(node.text)) return false;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  const isUse = ts.isCallExpression(parent) || ts.isNewExpression(parent) || ts.isBinaryExpression(parent);
  return isUse || ts.isVariableDeclaration(parent) || ts.isReturnStatement(parent);
}

/** Checks a file, and says what it imports and exports. */
function read(file) {
  const text = fs.readFileSync(file, "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const at = (node) => {
    const place = source.getLineAndCharacterOfPosition(node.getStart(source));
    return [file, place.line + 1, place.character + 1];
  };
  const [imports, exports, declared, free] = [[], [], new Set(), []];
  // What is used of other files: by names, and by all of a file under one. Where a name has a second meaning, it isn't judged.
  const [used, wholes, members, second] = [[], new Map(), [], new Set()];
  const visit = (node) => {
    const refused = refusal(node);
    if (refused !== undefined) throw new Mistake(...at(node), refused);
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
      const specifier = node.moduleSpecifier.text;
      const from = resolve(file, specifier, at(node));
      imports.push({ specifier, file: from });
      if (specifier === "tenure" && node.importClause?.name !== undefined) {
        throw new Mistake(...at(node), 'write: import { log, tree } from "tenure"');
      }
      if (node.importClause?.name !== undefined) {
        throw new Mistake(...at(node), `there is no default in files; write: import { name } from "${specifier}"`);
      }
      const list = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : node.exportClause;
      const isType = node.importClause?.isTypeOnly === true || node.isTypeOnly === true;
      if (list !== undefined && ts.isNamespaceImport(list)) wholes.set(list.name.text, { from, specifier });
      for (const one of isType ? [] : list?.elements ?? []) {
        const name = one.propertyName ?? one.name;
        if (one.isTypeOnly) continue;
        used.push({ from, specifier, name: name.text, at: at(name) });
        if (ts.isImportDeclaration(node)) wholes.set(one.name.text, { from, specifier, name: name.text });
      }
    }
    const isImport = ts.isImportSpecifier(node) || ts.isNamespaceImport(node);
    if (node.name !== undefined && ts.isIdentifier(node.name) && !isImport && !ts.isPropertyAccessExpression(node)) {
      second.add(node.name.text);
    }
    if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression) && node.questionDotToken === undefined) {
      const isCalled = ts.isCallExpression(node.parent) && node.parent.expression === node;
      members.push({ of: node.expression.text, name: node.name.text, at: at(node.name), isCalled });
    }
    if (node.name !== undefined && ts.isIdentifier(node.name) && !ts.isPropertyAccessExpression(node)) {
      declared.add(node.name.text);
    }
    if (ts.isIdentifier(node) && node.text in ELSEWHERE && Object.hasOwn(ELSEWHERE, node.text)) free.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  for (const node of free.filter((it) => isFree(it, declared))) {
    throw new Mistake(...at(node), `there is no ${node.text} on devices: ${ELSEWHERE[node.text]}`);
  }
  const names = new Set();
  for (const statement of source.statements) {
    const isExported = ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some((it) => it.kind === ts.SyntaxKind.ExportKeyword);
    if (isExported && statement.name !== undefined) names.add(statement.name.text);
    if (isExported && ts.isVariableStatement(statement)) {
      const add = (name) => ts.isIdentifier(name) ? names.add(name.text) : name.elements.forEach((it) => it.name && add(it.name));
      statement.declarationList.declarations.forEach((it) => add(it.name));
    }
    if (isExported && ts.isFunctionDeclaration(statement)) exports.push(statement.name.text);
    if (isExported && ts.isVariableStatement(statement)) {
      const isFunction = (it) => it !== undefined && (ts.isArrowFunction(it) || ts.isFunctionExpression(it));
      const made = statement.declarationList.declarations.filter((it) => isFunction(it.initializer));
      exports.push(...made.map((it) => it.name.text));
    }
    if (ts.isExportDeclaration(statement)) {
      const { exportClause } = statement;
      const all = ts.isNamespaceExport(exportClause) ? [exportClause] : exportClause.elements;
      exports.push(...all.map((it) => it.name.text));
      all.forEach((it) => names.add(it.name.text));
    }
  }
  const uses = { used, wholes, members: members.filter((it) => wholes.has(it.of) && !second.has(it.of)) };
  return { file, text, imports, exports, names, uses, lines: text.split("\n").length };
}

/** Checks that what each file uses of others is there. */
function link(modules) {
  const own = described();
  const has = ({ from, specifier }) => {
    if (from === undefined) return { where: `"${specifier}"`, names: [...own.names.keys()], types: own.types };
    return { where: from, names: [...modules.find((it) => it.file === from).names], types: new Set() };
  };
  for (const { file, uses } of modules) {
    // A type of "tenure" is left out by TypeScript, and is none of JavaScript.
    const isType = (types, name) => file.endsWith(".ts") && types.has(name);
    for (const use of uses.used) {
      const { where, names, types } = has(use);
      if (!names.includes(use.name) && !isType(types, use.name)) throw new Mistake(...use.at, absent(use.name, where, names));
    }
    for (const member of uses.members) {
      const whole = uses.wholes.get(member.of);
      if (whole.name === undefined) {
        const { where, names, types } = has(whole);
        if (!names.includes(member.name) && !isType(types, member.name)) throw new Mistake(...member.at, absent(member.name, where, names));
        continue;
      }
      // An object of "tenure" has functions alone, and what each object has.
      const names = whole.from === undefined ? own.names.get(whole.name) : undefined;
      if (names === undefined || !member.isCalled || names.has(member.name) || member.name in {}) continue;
      throw new Mistake(...member.at, absent(member.name, member.of, [...names]));
    }
  }
}

/** The file that an import names; undefined for Tenure's own. */
function resolve(from, specifier, at) {
  if (specifier === "tenure") return undefined;
  if (!specifier.startsWith(".")) {
    throw new Mistake(...at, `${specifier}: "tenure" and files of the project ("./name.js") are imported, nothing else`);
  }
  const named = path.join(path.dirname(from), specifier);
  const found = [named, `${named}.js`, `${named}.ts`, named.replace(/\.js$/, ".ts")].find((it) => fs.statSync(it, { throwIfNoEntry: false })?.isFile());
  if (found === undefined) throw new Mistake(...at, `there is no file ${named}`);
  return found;
}

/** The entry and all that it imports, each once, the entry first. */
function gather(first) {
  const [found, waiting] = [[], [path.normalize(first)]];
  while (waiting.length > 0) {
    const file = waiting.shift();
    if (found.some((it) => it.file === file)) continue;
    const module = read(file);
    found.push(module);
    waiting.push(...module.imports.map((it) => it.file).filter((it) => it !== undefined));
  }
  return found;
}

/** A file in the language of 2009, with a map to its source. */
function lowered(module) {
  const { ScriptTarget, ModuleKind } = ts;
  const made = ts.transpileModule(module.text, {
    fileName: module.file,
    reportDiagnostics: true,
    compilerOptions: {
      target: ScriptTarget.ES5, module: ModuleKind.CommonJS, sourceMap: true, removeComments: true, allowJs: true,
      newLine: ts.NewLineKind.LineFeed,
    },
  });
  for (const wrong of made.diagnostics) {
    const place = wrong.file?.getLineAndCharacterOfPosition(wrong.start ?? 0) ?? { line: 0, character: 0 };
    const words = ts.flattenDiagnosticMessageText(wrong.messageText, " ");
    throw new Mistake(module.file, place.line + 1, place.character + 1, words);
  }
  const text = made.outputText.replace(/\n?\/\/# sourceMappingURL=.*\n?$/, "");
  return { text, map: JSON.parse(made.sourceMapText).mappings };
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The numbers of a segment of a source map (ECMA-426, base64 VLQ). */
function numbers(segment) {
  const found = [];
  let [value, shift] = [0, 0];
  for (const letter of segment) {
    const digit = DIGITS.indexOf(letter);
    value += (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    found.push((value & 1) === 0 ? value >> 1 : -(value >> 1));
    [value, shift] = [0, 0];
  }
  return found;
}

/** Where tokens begin in a text, each with its line in the source; those of lines that TypeScript adds are left out. */
function places(text, map) {
  const lines = text.split("\n"), found = [];
  let [offset, sourceLine] = [0, 0];
  map.split(";").forEach((segments, line) => {
    let column = 0;
    for (const segment of segments.split(",").filter((it) => it !== "")) {
      const [columns, , sourceLines = 0] = numbers(segment);
      column += columns;
      sourceLine += sourceLines;
      const isAdded = /^(exports\.[\w$]+ = )+[\w$]+( 0)?;$/.test(lines[line]);
      if (!isAdded) found.push({ offset: offset + column, line: sourceLine });
    }
    offset += lines[line].length + 1;
  });
  return found;
}

/** The text with each token in the line of its source, as far as the language allows it there. */
function relaid({ text, map }) {
  // A line that ends in a backslash goes on in the same text.
  const flat = (part) => part.replace(/\\\n/g, "").replace(/\s*\n\s*/g, " ");
  const marks = places(text, map);
  let [laid, line] = [flat(text.slice(0, marks[0]?.offset)), 0];
  marks.forEach((mark, index) => {
    const part = flat(text.slice(mark.offset, marks[index + 1]?.offset));
    const isHeld = /\b(return|throw|break|continue)\s*$/.test(laid.slice(-12)) || /^\s*(\+\+|--)/.test(part);
    if (mark.line > line && !isHeld) {
      laid += "\n".repeat(mark.line - line);
      line = mark.line;
    }
    laid += part;
  });
  return laid;
}

/** All files as one script, and the line in which each begins. */
function joined(modules) {
  let script = "var __m=[],__f=[];function __require(i){var m=__m[i];if(!m){__m[i]=m={};__f[i](m);}return m;}\n";
  const files = [];
  modules.forEach((module, number) => {
    const index = (specifier) => modules.findIndex((it) => it.file === module.imports.find((one) => one.specifier === specifier)?.file);
    const text = relaid(lowered(module))
      .replace('"use strict";', "")
      .replace('Object.defineProperty(exports, "__esModule", { value: true });', "")
      // What is undefined until it is set needn't be set to that, and the engine makes no getter of a value.
      .replace(/(exports\.[\w$]+ = )+void 0;/, "")
      .replace(/require\((\s*)"([^"]*)"(\s*)\)/g, (whole, before, specifier, behind) =>
        specifier === "tenure" ? `${before}__tenure${behind}` : `__require(${before}${index(specifier)}${behind})`);
    files.push({ name: module.file, first: script.split("\n").length });
    script += `__f[${number}]=function(exports){${text}\n};\n`;
  });
  return { script: `${script}var __main=__require(0);__f=null;\n`, files };
}

/** The bytecode of a script. */
function compiled({ script, files }) {
  class Left extends Error {}
  const module = new WebAssembly.Module(fs.readFileSync(compiler));
  const env = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    env[from] ??= {};
    env[from][name] = () => { if (name === "longjmp") throw new Left(); return 0; };
  }
  const engine = new WebAssembly.Instance(module, env).exports;
  const bytes = (at, length) => Buffer.from(new Uint8Array(engine.memory.buffer, at, length));
  const source = Buffer.from(script);
  const at = engine.room(source.length);
  new Uint8Array(engine.memory.buffer).set(source, at);
  try {
    if (engine.compile(at, source.length) !== 0) throw new Error("the engine can't compile the program");
  } catch (error) {
    if (!(error instanceof Left)) throw error;
    const line = engine.line() + 1;
    const file = files.findLast((it) => it.first <= line) ?? files[0];
    const rest = bytes(engine.message(), 128).toString();
    throw new Mistake(file.name, line - file.first + 1, undefined, rest.slice(0, rest.indexOf("\0")));
  }
  return Buffer.concat([bytes(engine.header_at(), engine.header_bytes()), bytes(engine.code_at(), engine.code_length())]);
}

/** The program as C. */
function program(code, files, exports) {
  const wrapper = (name, number) => {
    const body = name === "entry" && !exports.includes(name) ? "tenure_js_start()" : `tenure_js_call("${name}")`;
    return `__attribute__((export_name("${name}"))) void export_${number}(void) {\n    ${body};\n}\n`;
  };
  const names = exports.includes("entry") ? exports : ["entry", ...exports];
  const rows = files.map(({ name, first }) => `    {${first}, ${JSON.stringify(name)}},\n`);
  const lines = Array.from(code.toString("hex").match(/.{1,64}/g), (it) => `    ${it.replace(/../g, "0x$&,")}\n`);
  return `/* Made by \`tenure build\`. */
#include <stdint.h>

struct tenure_js_file {
    uint32_t first_line;
    const char *name;
};

_Alignas(8) uint8_t tenure_js_code[] = {
${lines.join("")}};
const uint32_t tenure_js_code_bytes = sizeof tenure_js_code;
const struct tenure_js_file tenure_js_files[] = {
${rows.join("")}};
const uint32_t tenure_js_file_count = sizeof tenure_js_files / sizeof tenure_js_files[0];

void tenure_js_start(void);
void tenure_js_call(const char *name);

${names.map(wrapper).join("\n")}`;
}

try {
  const modules = gather(entry);
  link(modules);
  const whole = joined(modules);
  fs.writeFileSync(output, program(compiled(whole), whole.files, modules[0].exports));
} catch (error) {
  if (!(error instanceof Mistake)) throw error;
  console.error(error.message);
  process.exit(MISTAKE);
}
