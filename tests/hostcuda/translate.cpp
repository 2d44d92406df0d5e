/* translate.cpp - makes C++ of a .cu file as people write it, for a host compiler with hostcuda.h in front.
 *
 *   translate [-I FOLDER]... [--whole] FILE.cu FOLDER    writes into FOLDER; prints the name of what FILE became
 *
 *   kernel<<<grid, block, bytes, stream>>>(x)   HCU_LAUNCH(kernel)(hcu::config(grid, block, bytes, stream))(x)
 *   __shared__ T a[n], b;                       typedef T hcu_type_a[n], hcu_type_b; and a reference for each
 *   extern __shared__ T a[];                    the same with a pointer
 *   #ifdef __CUDACC__                           #ifdef AMP_HOSTCUDA
 *   __managed__ int x;                          the same, and the runtime is told of x
 *   asm("ret;"), #if __CUDA_ARCH__ without      an error at that line, for it would be left out or be a CPU's
 * instruction
 *     an #else, in what runs on the device
 *   __device__ int x; with --whole              static, as nvcc without -rdc=true has it
 *   f((void *)kernel, ...)                      without the cast, where f is a launch: its type is needed
 *   #include "x.cuh"                            what x.cuh became, if it or what it includes has any of these
 *
 * Each line stays where it is, and #line names the original: compilers and sanitizers speak of the user's lines.
 * The text is read as tokens; macros are not expanded, so in the text of a macro the same is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

enum Kind { SPACE, WORD, TEXT, SIGN, DIRECTIVE }; /* TEXT: strings, numbers; DIRECTIVE: one that is not a #define */
struct Token {
    Kind kind;
    std::string text;
};
typedef std::vector<Token> Tokens;

static std::vector<std::string> g_folders; /* -I */
static std::string g_out;
static bool g_whole; /* each file is a whole program of the device */
struct File { std::string path, becomes; };
static std::vector<File> g_files;

static void fail(const std::string &path, int line, const char *why) {
    fprintf(stderr, "%s:%d: error: hostcuda: %s\n", path.c_str(), line, why);
    exit(1);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}
static bool digit(char c) { return c >= '0' && c <= '9'; }

static size_t skip_quoted(const std::string &s, size_t i) { /* from a quote to the place after its end */
    char quote = s[i++];
    while (i < s.size() && s[i] != quote && s[i] != '\n')
        i += s[i] == '\\' ? 2 : 1;
    return i < s.size() ? i + 1 : s.size();
}
static size_t skip_raw(const std::string &s, size_t i) { /* R"x( ... )x", from its quote */
    size_t open = s.find('(', i);
    if (open == std::string::npos) return s.size();
    std::string close = ")" + s.substr(i + 1, open - i - 1) + "\"";
    size_t end = s.find(close, open);
    return end == std::string::npos ? s.size() : end + close.size();
}
static size_t skip_comment(const std::string &s, size_t i) {
    size_t end = s[i + 1] == '/' ? s.find('\n', i) : s.find("*/", i + 2);
    if (end == std::string::npos) return s.size();
    return s[i + 1] == '/' ? end : end + 2;
}
static size_t skip_directive(const std::string &s, size_t i) { /* to its end of line, with continued ones */
    while (i < s.size() && s[i] != '\n') {
        if (s[i] == '/' && i + 1 < s.size() && s[i + 1] == '*') {
            i = skip_comment(s, i);
            continue;
        }
        if (s[i] == '\\' && i + 1 < s.size() && s[i + 1] == '\r') i++;
        i += s[i] == '\\' ? 2 : 1;
    }
    return i < s.size() ? i : s.size();
}
static bool is_define(const std::string &s, size_t i) {
    i = s.find_first_not_of(" \t", i + 1);
    return i != std::string::npos && s.compare(i, 6, "define") == 0;
}
static size_t skip_number(const std::string &s, size_t i) {
    while (i < s.size() && (word_char(s[i]) || s[i] == '.' || (s[i] == '\'' && word_char(s[i + 1]))))
        i++;
    return i;
}
static size_t skip_sign(const std::string &s, size_t i) {
    static const char *const signs[] = {"<<<", ">>>", "<<=", ">>=", "->", "::", "##", "<<", ">>", "<=", ">="};
    for (const char *sign : signs)
        if (s.compare(i, strlen(sign), sign) == 0) return i + strlen(sign);
    return i + 1;
}
static Kind next_token(const std::string &s, size_t i, bool line_start, size_t *end) {
    char c = s[i], d = i + 1 < s.size() ? s[i + 1] : '\0';
    if (c == '/' && (d == '/' || d == '*')) {
        *end = skip_comment(s, i);
        return SPACE;
    }
    if (strchr(" \t\r\n\f\v", c)) {
        *end = i + 1;
        return SPACE;
    }
    if (c == '\\') {
        *end = i + 1;
        return SPACE;
    }
    if (c == '#' && line_start) {
        bool define = is_define(s, i); /* its text is looked at */
        *end = define ? i + 1 : skip_directive(s, i);
        return define ? SPACE : DIRECTIVE;
    }
    if (c == '"' || c == '\'') {
        *end = skip_quoted(s, i);
        return TEXT;
    }
    if (digit(c) || (c == '.' && digit(d))) {
        *end = skip_number(s, i);
        return TEXT;
    }
    if (!word_char(c)) {
        *end = skip_sign(s, i);
        return SIGN;
    }
    *end = i;
    while (*end < s.size() && word_char(s[*end]))
        (*end)++;
    if (*end < s.size() && s[*end] == '"' && s[*end - 1] == 'R') {
        *end = skip_raw(s, *end);
        return TEXT;
    }
    return WORD;
}
static Tokens tokens_of(const std::string &s) {
    Tokens out;
    bool line_start = true;
    for (size_t i = 0, end; i < s.size(); i = end) {
        Kind kind = next_token(s, i, line_start, &end);
        if (end > s.size()) end = s.size();
        out.push_back({kind, s.substr(i, end - i)});
        if (kind != SPACE)
            line_start = false;
        else if (s[i] == '\n')
            line_start = true;
    }
    return out;
}
static bool is(const Tokens &t, size_t i, const char *text) { return i < t.size() && t[i].text == text; }
static size_t after(const Tokens &t, size_t i) { /* the next token that says something */
    do
        i++;
    while (i < t.size() && t[i].kind == SPACE);
    return i;
}
static size_t before(const Tokens &t, size_t i) { /* t.size(): there is none */
    while (i-- > 0)
        if (t[i].kind != SPACE) return i;
    return t.size();
}
static int line_of(const Tokens &t, size_t i) {
    int line = 1;
    for (size_t k = 0; k < i && k < t.size(); k++)
        for (char c : t[k].text)
            line += c == '\n';
    return line;
}
static std::string joined(const Tokens &t, size_t from, size_t to) {
    std::string s;
    for (size_t i = from; i < to && i < t.size(); i++)
        s += t[i].text;
    return s;
}

/* How deep a token opens or closes: parentheses, brackets and braces. */
static int depth_change(const Token &t) {
    if (t.kind != SIGN) return 0;
    if (t.text == "(" || t.text == "[" || t.text == "{") return 1;
    return t.text == ")" || t.text == "]" || t.text == "}" ? -1 : 0;
}

/* ---- <<< >>> ----------------------------------------------------------------------------------------------------- */

/* The first token of the bracket that ends at `i`, backwards; t.size() if there is none. */
static size_t back_over_bracket(const Tokens &t, size_t i) {
    int depth = 0;
    for (size_t k = i + 1; k-- > 0;) {
        depth -= depth_change(t[k]);
        if (depth == 0) return k;
    }
    return t.size();
}
static bool closes_angles(const Token &t) { return t.text == ">" || t.text == ">>" || t.text == ">>>"; }
/* The "<" of template arguments whose ">" is token `i`. */
static size_t back_over_angles(const Tokens &t, size_t i) {
    size_t angles = 0;
    int depth = 0;
    for (size_t k = i + 1; k-- > 0;) {
        depth -= depth_change(t[k]);
        if (depth) continue;
        if (closes_angles(t[k])) angles += t[k].text.size();
        if (t[k].text == "<") angles--;
        if (angles == 0) return k;
        if (t[k].text == ";") break;
    }
    return t.size();
}
static bool is_statement(const Token &t) { return t.text == "return" || t.text == "else" || t.text == "do"; }
static bool is_name(const Tokens &t, size_t i) { return i < t.size() && t[i].kind == WORD && !is_statement(t[i]); }
/* The first token of what ends at `k`: name, name<T>, array[i], call(x), (expression). */
static size_t operand_begin(const Tokens &t, size_t k) {
    while (k < t.size() && t[k].kind != WORD) {
        bool bracket = t[k].text == ")", angles = closes_angles(t[k]);
        if (!bracket && !angles && t[k].text != "]") return t.size();
        size_t open = angles ? back_over_angles(t, k) : back_over_bracket(t, k);
        size_t owner = open < t.size() ? before(t, open) : open;
        bool called = is_name(t, owner) || (owner < t.size() && (closes_angles(t[owner]) || t[owner].text == "]"));
        if (bracket && !called) return open;
        k = owner;
    }
    return k;
}
/* Where the expression before token `i` begins: operands with ::, ., -> or, in a macro, ## between them. */
static size_t kernel_begin(const Tokens &t, size_t i) {
    size_t k = operand_begin(t, before(t, i));
    while (k < t.size()) {
        size_t p = before(t, k);
        if (is(t, p, "template")) p = before(t, p); /* a.template f<T> */
        bool scope = is(t, p, "::");
        if (!scope && !is(t, p, ".") && !is(t, p, "->") && !is(t, p, "##")) return k;
        size_t owner = before(t, p);
        if (scope && !is_name(t, owner) && !(owner < t.size() && closes_angles(t[owner]))) return p; /* ::name */
        k = operand_begin(t, owner);
    }
    return k;
}
static bool translate_launches(const std::string &path, Tokens &t) {
    bool changed = false;
    for (size_t i = 0; i < t.size(); i++) {
        if (!is(t, i, "<<<")) continue;
        size_t from = kernel_begin(t, i), to = i;
        if (from == t.size()) fail(path, line_of(t, i), "no kernel before <<<");
        int depth = 0;
        for (to = i + 1; to < t.size() && !(depth == 0 && is(t, to, ">>>")); to++)
            depth += depth_change(t[to]);
        if (to == t.size()) fail(path, line_of(t, i), "no >>> to this <<<");
        t[from].text = "HCU_LAUNCH(" + t[from].text;
        t[i].text = ")(hcu::config(";
        t[to].text = "))";
        changed = true;
    }
    return changed;
}

/* ---- __shared__ -------------------------------------------------------------------------------------------------- */

static void blank(Token &t) { t = {SPACE, std::string(t.text.size(), ' ')}; }

/* Is token `i` outside of all functions, and is it in one that runs on the device? Braces of namespaces and of
 * extern "C" do not count. */
struct Scopes {
    std::vector<bool> function;           /* one for each open brace */
    size_t device = 0;                    /* so many of them are around a body that runs on the device; 0: none */
    std::vector<std::vector<bool>> at_if; /* as it was before each open #if: its branches begin alike */
    bool global() const {
        for (bool f : function)
            if (f) return false;
        return true;
    }
    void directive(const std::string &text) {
        size_t k = text.find_first_not_of(" \t", 1);
        std::string name = k == std::string::npos ? "" : text.substr(k, 2);
        if (name == "if") at_if.push_back(function);
        if (name == "el" && !at_if.empty()) function = at_if.back();
        if (name == "en" && !at_if.empty()) at_if.pop_back();
    }
    /* Does the declaration before this brace say __global__ or __device__? */
    static bool device_body(const Tokens &t, size_t brace) {
        for (size_t i = brace; i-- > 0;) {
            if (t[i].kind == SIGN && (t[i].text == ";" || t[i].text == "}" || t[i].text == "{")) return false;
            if (t[i].text == "__global__" || t[i].text == "__device__") return true;
        }
        return false;
    }
    void token(const Tokens &t, size_t i) {
        if (t[i].kind == DIRECTIVE) directive(t[i].text);
        if (t[i].kind != SIGN) return;
        if (t[i].text == "}" && !function.empty()) function.pop_back();
        if (function.size() < device) device = 0;
        if (t[i].text != "{") return;
        size_t p = before(t, i), q = p < t.size() ? before(t, p) : p;
        while (q < t.size() && (t[q].text == "::" || t[p].text == "::")) { /* namespace a::b { */
            p = q;
            q = before(t, p);
        }
        bool name_space = is(t, p, "namespace") || is(t, q, "namespace") || (is(t, q, "extern") && t[p].kind == TEXT);
        function.push_back(!name_space);
        if (!device && !name_space && device_body(t, i)) device = function.size();
    }
};

/* (*name)[n], (*name)(int): the name, from the bracket. */
static size_t name_of_pointer(const Tokens &t, size_t open) {
    size_t name = t.size();
    for (size_t i = after(t, open); i < t.size() && !is(t, i, ")") && !is(t, i, "["); i++)
        if (t[i].kind == WORD) name = i;
    return name;
}
/* The names that a declaration declares: in each part between commas, the last word before "[" or its end. */
static std::vector<size_t> declared_names(const Tokens &t, size_t from, size_t to) {
    std::vector<size_t> names;
    size_t name = to;
    int depth = 0, angles = 0;
    bool after_name = false;
    for (size_t i = from; i <= to; i++) {
        if (i == to || (depth == 0 && angles == 0 && is(t, i, ","))) {
            if (name < to) names.push_back(name);
            name = to;
            after_name = false;
            continue;
        }
        bool outside = depth == 0 && angles == 0;
        if (outside && is(t, i, "[") && name < to) after_name = true;
        if (outside && !after_name && is(t, i, "(") && is(t, after(t, i), "*")) {
            name = name_of_pointer(t, i);
            after_name = true;
        }
        depth += depth_change(t[i]);
        if (depth) continue;
        if (t[i].text == "<" && !after_name) angles++;
        if (t[i].text == ">") angles--;
        if (t[i].text == ">>") angles -= 2;
        if (angles || after_name || t[i].kind != WORD || is(t, after(t, i), "(")) continue;
        name = i;
    }
    return names;
}
static size_t end_of_declaration(const Tokens &t, size_t i) {
    for (int depth = 0; i < t.size(); i++) {
        depth += depth_change(t[i]);
        if (depth < 0) return t.size();
        if (t[i].kind == SPACE && t[i].text == "\n" && is(t, i - 1, "\\")) continue;
        if (depth == 0 && is(t, i, ";")) return i;
    }
    return t.size();
}
/* In the text of a macro, a declaration ends before the line does. */
static bool within_line(const Tokens &t, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (t[i].text == "\n" && !is(t, i - 1, "\\")) return false;
    return true;
}
static size_t begin_of_declaration(const Tokens &t, size_t i) {
    size_t begin = i;
    for (size_t p = before(t, i); p < t.size(); p = before(t, p)) {
        if (t[p].text == ")") { /* alignas(16), __align__(16) */
            size_t open = back_over_bracket(t, p), name = open < t.size() ? before(t, open) : open;
            if (name == t.size() || !(is(t, name, "alignas") || is(t, name, "__align__"))) break;
            p = name;
        } else if (t[p].kind != WORD) {
            break;
        }
        begin = p;
    }
    return begin;
}
static bool in_define(const Tokens &t, size_t i) {
    while (i-- > 0) {
        if (t[i].text == "\n" && !is(t, i - 1, "\\")) return false;
        if (t[i].text == "#") return true;
    }
    return false;
}
static bool translate_shared(const std::string &path, Tokens &t) {
    bool changed = false;
    Scopes scopes;
    for (size_t i = 0; i < t.size(); i++) {
        scopes.token(t, i);
        if (t[i].kind != WORD || t[i].text != "__shared__") continue;
        size_t begin = begin_of_declaration(t, i), end = end_of_declaration(t, i);
        bool macro = in_define(t, i);
        if (macro && (end == t.size() || !within_line(t, i, end))) continue; /* a keyword in a macro: left alone */
        if (end == t.size()) fail(path, line_of(t, i), "__shared__: no end of the declaration");
        bool dynamic = false;
        t[i].text = "typedef";
        for (size_t k = begin; k < end; k++) {
            if (is(t, k, "extern")) dynamic = true;
            if (is(t, k, "extern") || is(t, k, "static") || (is(t, k, "__shared__") && k != i)) blank(t[k]);
            if (is(t, k, "alignas")) t[k].text = "__align__";
        }
        bool global = !macro && scopes.global();
        if (global && !dynamic) fail(path, line_of(t, i), "__shared__ outside of a function: declare it in the kernel");
        std::string made;
        for (size_t name : declared_names(t, i + 1, end)) {
            const char *how = !dynamic ? "VARIABLE" : global ? "GLOBAL" : "DYNAMIC";
            made += std::string(" HCU_SHARED_") + how + "(" + t[name].text + ")";
            t[name].text = "hcu_type_" + t[name].text;
        }
        if (made.empty()) fail(path, line_of(t, i), "__shared__: which name does this declare?");
        t[end].text += made;
        changed = true;
    }
    return changed;
}

/* ---- variables and functions of the device ----------------------------------------------------------------------- */

static bool is_space_word(const Token &t) {
    return t.text == "__device__" || t.text == "__constant__" || t.text == "__managed__";
}
/* What stands between the beginning of a declaration and its "(", "=", "[", "{" or ";". */
struct Head {
    bool linkage = false, host = false, managed = false, member = false, function = false;
    size_t end = 0;
};
static Head head_of(const Tokens &t, size_t begin) {
    Head h;
    size_t i = begin;
    for (; i < t.size(); i = after(t, i)) {
        if (is(t, i, "extern") || is(t, i, "static") || is(t, i, "typedef") || is(t, i, "using")) h.linkage = true;
        if (is(t, i, "__host__") || is(t, i, "__global__")) h.host = true;
        if (is(t, i, "__managed__")) h.managed = true;
        if (is(t, i, "__align__") || is(t, i, "alignas") || is(t, i, "__launch_bounds__") ||
            is(t, i, "__attribute__")) {
            size_t open = after(t, i);
            int depth = 0;
            do {
                depth += depth_change(t[open]);
                i = open++;
            } while (depth && open < t.size());
            continue;
        }
        if (t[i].kind == SIGN && strchr("(=[{;", t[i].text[0])) break;
    }
    h.end = i;
    h.function = is(t, i, "(");
    size_t name = before(t, i), owner = name < t.size() ? before(t, name) : t.size();
    h.member = owner < t.size() && t[owner].text == "::";
    return h;
}
/* Variables and functions outside of all functions: static where each file is whole, and __managed__ ones made
 * known. */
static bool translate_variables(Tokens &t) {
    bool changed = false;
    Scopes scopes;
    for (size_t i = 0; i < t.size(); i++) {
        scopes.token(t, i);
        if (t[i].kind != WORD || !is_space_word(t[i]) || !scopes.global() || in_define(t, i)) continue;
        size_t begin = begin_of_declaration(t, i), p = before(t, begin);
        Head h = head_of(t, begin);
        bool extern_c = p < t.size() && t[p].kind == TEXT, templated = p < t.size() && t[p].text == ">";
        size_t end = end_of_declaration(t, i);
        if (h.managed && !h.function && !h.linkage && end < t.size()) {
            for (size_t name : declared_names(t, i + 1, end))
                t[end].text += " HCU_MANAGED(" + t[name].text + ")";
            changed = true;
        }
        if (g_whole && !h.linkage && !h.host && !h.member && !extern_c && !templated) {
            t[begin].text = "static " + t[begin].text;
            changed = true;
        }
        while (i + 1 < h.end) /* one declaration, one change */
            scopes.token(t, ++i);
    }
    return changed;
}

/* ---- what would be left out, or mean something else, on a CPU ---------------------------------------------------- */

/* Does an asm statement hold PTX? Its instructions have dots in their names; these four have none. */
static bool is_ptx(const std::string &text) {
    std::string word;
    for (size_t i = 0; i <= text.size(); i++) {
        char c = i < text.size() ? text[i] : ';';
        if (word_char(c) || c == '.') {
            word += c;
            continue;
        }
        size_t dot = word.find('.');
        if (dot != std::string::npos && dot > 0 && !digit(word[0])) return true;
        if (word == "ret" || word == "exit" || word == "trap" || word == "brkpt") return true;
        word.clear();
    }
    return false;
}
static bool translate_asm(Tokens &t) {
    bool changed = false;
    for (size_t i = 0; i < t.size(); i++) {
        if (!is(t, i, "asm") && !is(t, i, "__asm__") && !is(t, i, "__asm")) continue;
        size_t k = after(t, i);
        while (is(t, k, "volatile") || is(t, k, "__volatile__"))
            k = after(t, k);
        if (!is(t, k, "(")) continue;
        std::string text;
        for (k = after(t, k); k < t.size() && t[k].kind == TEXT; k = after(t, k))
            text += t[k].text.substr(1, t[k].text.size() - 2) + " ";
        if (!is_ptx(text)) continue;
        t[i].text = "HCU_PTX " + t[i].text;
        changed = true;
    }
    return changed;
}
static std::string directive_name(const Token &t) {
    if (t.kind != DIRECTIVE) return "";
    size_t k = t.text.find_first_not_of(" \t", 1);
    if (k == std::string::npos) return "";
    size_t end = k;
    while (end < t.text.size() && word_char(t.text[end]))
        end++;
    return t.text.substr(k, end - k);
}
/* Words that only a running thread of the device can mean. */
static bool needs_device(const Tokens &t, size_t from, size_t to) {
    static const char *const words[] = {"threadIdx", "blockIdx", "blockDim", "gridDim", "__syncthreads", "__syncwarp",
        "atomicAdd", "__shfl_sync", "__shfl_down_sync", "__shfl_xor_sync"};
    for (size_t i = from; i < to; i++)
        for (const char *word : words)
            if (is(t, i, word)) return true;
    return false;
}
static bool says_something(const Tokens &t, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (t[i].kind != SPACE) return true;
    return false;
}
/* An #if of __CUDA_ARCH__ within what runs on the device: without an #else, or with one that does another thing, code
 * would be left out in silence. Marks it, so that the preprocessor speaks if that branch is the one that is
 * left out. */
static bool translate_arch(const std::string &shown, Tokens &t) {
    std::vector<Token> made(t); /* lines are counted in the text as it was */
    bool changed = false;
    Scopes scopes;
    for (size_t i = 0; i < t.size(); i++) {
        scopes.token(t, i);
        std::string name = directive_name(t[i]);
        bool arch = name.compare(0, 2, "if") == 0 && t[i].text.find("__CUDA_ARCH__") != std::string::npos;
        if (!arch || !scopes.device) continue;
        size_t other = t.size(), end = i + 1;
        for (int depth = 0; end < t.size(); end++) {
            std::string here = directive_name(t[end]);
            if (depth == 0 && (here == "endif" || here == "elif" || here == "else")) {
                if (here == "endif") break;
                if (other == t.size()) other = end;
            }
            depth += here.compare(0, 2, "if") == 0;
            depth -= here == "endif";
        }
        if (end == t.size()) continue;
        std::string mark = "#line " + std::to_string(line_of(t, i)) + " \"" + shown + "\"\nHCU_LEFT_OUT\n";
        size_t place = other < t.size() ? other : end;
        std::string back = "#line " + std::to_string(line_of(t, place) + (other < t.size())) + " \"" + shown + "\"\n";
        if (other == t.size()) {
            if (!says_something(t, i + 1, end)) continue;
            made[end].text = "#else\n" + mark + back + t[end].text;
        } else if (needs_device(t, i + 1, other) && !needs_device(t, other + 1, end)) {
            made[other].text += "\n" + mark + back.substr(0, back.size() - 1);
        } else {
            continue;
        }
        changed = true;
    }
    t.swap(made);
    return changed;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static bool mentions(const Tokens &t, const char *word) {
    for (const Token &x : t)
        if (x.text == word || (x.kind == DIRECTIVE && x.text.find(word) != std::string::npos)) return true;
    return false;
}
/* What is for nvcc is for this compiler, too. A header without device code keeps its text, as does one that knows of
 * us. */
static bool translate_directives(Tokens &t, bool main_file) {
    bool changed = false;
    if (mentions(t, "AMP_HOSTCUDA")) return false;
    bool device = mentions(t, "__global__") || mentions(t, "__device__") || mentions(t, "__shared__");
    if (!main_file && !device && !mentions(t, "<<<")) return false;
    for (Token &x : t) {
        if (x.kind != DIRECTIVE || x.text.find("include") < 12) continue;
        static const char *const nvcc[] = {"__CUDACC__", "__NVCC__", "__CUDACC_EXTENDED_LAMBDA__"};
        for (const char *word : nvcc)
            for (size_t at = 0; (at = x.text.find(word, at)) != std::string::npos; changed = true)
                x.text.replace(at, strlen(word), "AMP_HOSTCUDA");
    }
    return changed;
}
static bool translate_version(Tokens &t) { /* of nvcc: names that NVIDIA's headers look at, too */
    bool changed = false;
    for (Token &x : t)
        for (size_t at = 0; (at = x.text.find("__CUDACC_VER_M", at)) != std::string::npos; changed = true)
            x.text.replace(at, 2, "HCU_");
    return changed;
}
static bool translate_noinline(Tokens &t) { /* not that of __attribute__((__noinline__)) */
    bool changed = false;
    for (size_t i = 0; i < t.size(); i++) {
        size_t p = before(t, i);
        if (t[i].kind != WORD || !is(t, i, "__noinline__") || is(t, p, "(") || is(t, p, ",")) continue;
        t[i].text = "HCU_NOINLINE";
        changed = true;
    }
    return changed;
}
static bool translate_casts(Tokens &t) { /* cudaLaunchCooperativeKernel((void *)kernel, ...) */
    static const char *const names[] = {
        "cudaLaunchCooperativeKernel", "cudaLaunchKernel", "cudaFuncSetAttribute", "cudaFuncGetAttributes"};
    bool changed = false;
    for (size_t i = 0; i < t.size(); i++) {
        bool ours = false;
        for (const char *name : names)
            ours = ours || is(t, i, name);
        size_t open = ours ? after(t, i) : t.size(), k = after(t, open);
        if (!is(t, open, "(") || !is(t, k, "(")) continue;
        size_t type = after(t, k);
        if (is(t, type, "const")) type = after(t, type);
        size_t star = after(t, type), close = after(t, star);
        if (!is(t, type, "void") || !is(t, star, "*") || !is(t, close, ")")) continue;
        for (size_t x = k; x <= close; x++)
            if (t[x].kind != SPACE) blank(t[x]);
        changed = true;
    }
    return changed;
}

static bool read_file(const std::string &path, std::string *text) {
    FILE *f = fopen(path.c_str(), "rb");
    if (!f) return false;
    char buffer[65536];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        text->append(buffer, n);
    bool whole = !ferror(f);
    fclose(f);
    return whole && text->find('\0') == std::string::npos;
}
static std::string absolute(const std::string &path) {
    char *p = realpath(path.c_str(), nullptr);
    std::string s = p ? p : path;
    free(p);
    return s;
}
static std::string translate(const std::string &path, const std::string &shown);

/* #include "x" or <x>: the file it means, or "" if the compiler is to look for it. */
static std::string included(const std::string &directive, const std::string &folder, size_t *at, size_t *length) {
    size_t k = directive.find_first_not_of(" \t", 1);
    if (k == std::string::npos || directive.compare(k, 7, "include") != 0) return "";
    size_t open = directive.find_first_of("\"<", k);
    if (open == std::string::npos) return "";
    size_t close = directive.find(directive[open] == '<' ? '>' : '"', open + 1);
    if (close == std::string::npos) return "";
    std::string name = directive.substr(open + 1, close - open - 1), text;
    *at = open;
    *length = close + 1 - open;
    std::vector<std::string> tried(g_folders);
    if (directive[open] == '"') tried.insert(tried.begin(), folder);
    for (const std::string &f : tried) {
        std::string candidate = name[0] == '/' ? name : f + "/" + name;
        if (read_file(candidate, &text)) return candidate;
    }
    return "";
}
static bool translate_cub(Tokens &t) { /* #include <cub/block/block_reduce.cuh>: the header that refuses it */
    bool changed = false;
    for (Token &x : t) {
        size_t open = directive_name(x) == "include" ? x.text.find("<cub/") : std::string::npos;
        if (open == std::string::npos) continue;
        x.text.replace(open, x.text.find('>', open) - open, "<cub/cub.cuh");
        changed = true;
    }
    return changed;
}
static bool translate_includes(const std::string &folder, Tokens &t, bool must) {
    bool changed = false;
    std::vector<std::string> target(t.size());
    std::vector<size_t> at(t.size()), length(t.size());
    for (size_t i = 0; i < t.size(); i++) {
        if (t[i].kind != DIRECTIVE) continue;
        std::string file = included(t[i].text, folder, &at[i], &length[i]);
        if (file.empty()) continue;
        target[i] = translate(file, file);
        changed = changed || target[i] != absolute(file);
    }
    if (!changed && !must) return false;
    for (size_t i = 0; i < t.size(); i++) /* the copy lies elsewhere: say where each file is */
        if (!target[i].empty()) t[i].text.replace(at[i], length[i], "\"" + target[i] + "\"");
    return true;
}
static std::string base_name(const std::string &path) {
    size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}
/* The place of what a file becomes: itself, if nothing in it is to be translated. */
static std::string translate(const std::string &path, const std::string &shown) {
    std::string real = absolute(path), text;
    for (const File &f : g_files)
        if (f.path == real) return f.becomes;
    size_t mine = g_files.size();
    g_files.push_back({real, real});
    if (!read_file(path, &text)) fail(path, 1, "cannot be read");
    Tokens t = tokens_of(text);
    size_t slash = path.rfind('/');
    bool changed = mine == 0; /* the program itself is always a copy */
    const bool knows_us = mentions(t, "AMP_HOSTCUDA");
    changed = translate_directives(t, mine == 0) || changed;
    changed = translate_casts(t) || changed;
    changed = translate_cub(t) || changed;
    if (!knows_us) {
        changed = translate_version(t) || changed;
        changed = translate_asm(t) || changed;
        changed = translate_noinline(t) || changed;
        changed = translate_variables(t) || changed;
    }
    changed = translate_shared(path, t) || changed;
    changed = translate_launches(path, t) || changed;
    if (!knows_us) changed = translate_arch(shown, t) || changed; /* last: it adds lines */
    changed = translate_includes(slash == std::string::npos ? "." : path.substr(0, slash), t, changed) || changed;
    if (!changed) return real;
    std::string name = g_out + "/" + (mine ? std::to_string(mine) + "_" : "") + base_name(path);
    g_files[mine].becomes = absolute(g_out) + name.substr(g_out.size());
    FILE *f = fopen(name.c_str(), "wb");
    if (!f) fail(name, 1, "cannot be written");
    fprintf(f, "#line 1 \"%s\"\n%s", shown.c_str(), joined(t, 0, t.size()).c_str());
    if (fclose(f)) fail(name, 1, "cannot be written");
    return g_files[mine].becomes;
}

static void add_folder(const std::string &folder) { /* not the toolkit's: its headers are for a host compiler, too */
    static const char *const known[] = {"/cuda_runtime_api.h", "/cub/cub.cuh"};
    for (const char *header : known) {
        std::string text;
        if (read_file(folder + header, &text)) return;
    }
    g_folders.push_back(folder);
}

int main(int argc, char **argv) {
    std::vector<std::string> words;
    for (int i = 1; i < argc; i++) {
        std::string word = argv[i];
        if (word.compare(0, 2, "-I") == 0 && word.size() > 2)
            add_folder(word.substr(2));
        else if (word == "-I" && i + 1 < argc)
            add_folder(argv[++i]);
        else if (word == "--whole")
            g_whole = true;
        else
            words.push_back(word);
    }
    if (words.size() != 2) {
        fprintf(stderr, "usage: translate [-I FOLDER]... [--whole] FILE.cu FOLDER\n");
        return 2;
    }
    g_out = words[1];
    printf("%s\n", translate(words[0], words[0]).c_str());
    return 0;
}
