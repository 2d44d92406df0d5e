/* hcu_ptx_text.cpp - reads the PTX that nvcc made. A kernel with an instruction outside the subset is named on stderr
 * and stays with its host version. */
#include "hcu_ptx.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace hcu {
namespace ptx {
Map<string, std::unique_ptr<Kernel>> &g_kernels = *new Map<string, std::unique_ptr<Kernel>>;
string &g_file = *new string;

namespace {

/* ---- names ---- */

struct TypeName {
    const char *name;
    Type type;
};
const TypeName kTypes[] = {{"u8", U8}, {"s8", S8}, {"b8", B8}, {"u16", U16}, {"s16", S16}, {"b16", B16}, {"u32", U32},
    {"s32", S32}, {"b32", B32}, {"u64", U64}, {"s64", S64}, {"b64", B64}, {"f16", F16}, {"f16x2", F16X2},
    {"bf16", BF16}, {"bf16x2", BF16X2}, {"e4m3x2", E4M3X2}, {"e5m2x2", E5M2X2}, {"f32", F32}, {"f64", F64},
    {"pred", PRED}};
Type type_named(const string &s) {
    for (const TypeName &t : kTypes)
        if (s == t.name) return t.type;
    return NONE;
}
struct CodeName {
    const char *name;
    Code code;
};
const CodeName kCodes[] = {{"mov", MOV}, {"ld", LD}, {"ldu", LD}, {"st", ST}, {"cvta", CVTA}, {"cvt", CVT},
    {"add", ADD}, {"addc", ADD}, {"sub", SUB}, {"subc", SUB}, {"mul", MUL}, {"mad", MAD}, {"fma", FMA}, {"div", DIV},
    {"rem", REM}, {"sqrt", SQRT}, {"rcp", RCP}, {"rsqrt", RSQRT}, {"ex2", EX2}, {"lg2", LG2}, {"sin", SIN},
    {"cos", COS}, {"tanh", TANH}, {"min", MIN}, {"max", MAX}, {"abs", ABS}, {"neg", NEG}, {"copysign", COPYSIGN},
    {"and", AND}, {"or", OR}, {"xor", XOR}, {"not", NOT}, {"lop3", LOP3}, {"shl", SHL}, {"shr", SHR}, {"shf", SHF},
    {"setp", SETP}, {"selp", SELP}, {"testp", TESTP}, {"bra", BRA}, {"brx", BRX}, {"ret", RET}, {"exit", RET},
    {"bar", BAR}, {"barrier", BAR}, {"shfl", SHFL}, {"vote", VOTE}, {"match", MATCH}, {"redux", REDUX},
    {"activemask", ACTIVEMASK}, {"atom", ATOM}, {"red", ATOM}, {"membar", FENCE}, {"fence", FENCE}, {"popc", POPC},
    {"clz", CLZ}, {"bfind", BFIND}, {"brev", BREV}, {"bfe", BFE}, {"bfi", BFI}, {"prmt", PRMT}, {"trap", TRAP},
    {"griddepcontrol", NOP}, {"nanosleep", NOP}, {"prefetch", NOP}, {"discard", NOP}, {"applypriority", NOP}};
struct ModifierName {
    const char *name;
    uint64_t bit;
};
const ModifierName kModifiers[] = {{"wide", M_WIDE}, {"hi", M_HI}, {"ftz", M_FTZ}, {"sat", M_SAT}, {"rni", M_RNI},
    {"rzi", M_RZI}, {"rmi", M_RMI}, {"rpi", M_RPI}, {"to", M_TO}, {"cc", M_CC}, {"red", M_RED}, {"warp", M_WARP},
    {"l", M_LEFT}, {"r", M_RIGHT}, {"wrap", M_WRAP}, {"all", M_ALL}, {"any", M_ANY}, {"ballot", M_BALLOT}, {"up", M_UP},
    {"down", M_DOWN}, {"bfly", M_BFLY}, {"shiftamt", M_SHIFT_AMOUNT}, {"NaN", M_NAN}};
struct WordName {
    const char *name;
    Word word;
    bool unordered;
};
const WordName kWords[] = {{"eq", W_EQ, false}, {"ne", W_NE, false}, {"lt", W_LT, false}, {"le", W_LE, false},
    {"gt", W_GT, false}, {"ge", W_GE, false}, {"lo", W_LT, false}, {"ls", W_LE, false}, {"hi", W_GT, false},
    {"hs", W_GE, false}, {"equ", W_EQ, true}, {"neu", W_NE, true}, {"ltu", W_LT, true}, {"leu", W_LE, true},
    {"gtu", W_GT, true}, {"geu", W_GE, true}, {"num", W_NUM, false}, {"nan", W_NAN, false}, {"add", W_ADD, false},
    {"min", W_MIN, false}, {"max", W_MAX, false}, {"and", W_AND, false}, {"or", W_OR, false}, {"xor", W_XOR, false},
    {"exch", W_EXCH, false}, {"cas", W_CAS, false}, {"inc", W_INC, false}, {"dec", W_DEC, false},
    {"popc", W_POPC, false}, {"finite", W_FINITE, false}, {"infinite", W_INFINITE, false}, {"number", W_NUMBER, false},
    {"notanumber", W_NOTANUMBER, false}, {"normal", W_NORMAL, false}, {"subnormal", W_SUBNORMAL, false}};

/* ---- parser ------------------------------------------------------------------------------------------------------ */

string trim(const string &t) {
    size_t a = t.find_first_not_of(" \t"), b = t.find_last_not_of(" \t");
    return a == string::npos ? "" : t.substr(a, b - a + 1);
}
vector<string> split(const string &t, char separator) { /* not inside brackets; empty parts are kept */
    vector<string> v(1);
    int depth = 0;
    for (char c : t) {
        depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
        if (c == separator && depth == 0)
            v.emplace_back();
        else
            v.back() += c;
    }
    return v;
}
vector<string> words(const string &t) {
    vector<string> v;
    for (const string &w : split(t, ' '))
        if (!w.empty()) v.push_back(w);
    return v;
}
bool starts_with(const string &s, const char *prefix) { return s.compare(0, strlen(prefix), prefix) == 0; }
size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

struct Parser {
    const string &text;
    size_t at = 0;
    int line = 1;
    Kernel *k = nullptr;
    vector<Map<string, int>> scopes;
    Map<string, int> labels;
    Map<string, vector<string>> branch_tables;
    vector<std::pair<int, string>> branches; /* instruction and the label it names */
    Map<string, Variable> module_shared;
    size_t module_shared_bytes = 0;

    explicit Parser(const string &t) : text(t) {}

    void give_up(const string &why) {
        if (k && k->unsupported.empty()) k->unsupported = why;
    }
    /* The next statement without its end, which is ';' ':' '{' '}', 'd' for a directive of one line, 0 at the end. */
    string statement(char &end) {
        string s;
        int depth = 0;
        while (at < text.size()) {
            char c = text[at];
            if (text.compare(at, 2, "//") == 0) {
                while (at < text.size() && text[at] != '\n')
                    at++;
                continue;
            }
            if (text.compare(at, 2, "/*") == 0) {
                size_t close = text.find("*/", at);
                at = close == string::npos ? text.size() : close + 2;
                continue;
            }
            if (c == '\n') line++;
            bool one_line = c == '\n' &&
                (starts_with(s, ".version") || starts_with(s, ".target") || starts_with(s, ".address") ||
                    starts_with(s, ".file") || starts_with(s, ".loc"));
            bool label = c == ':' && !s.empty() && s.find(' ') == string::npos && text.compare(at, 2, "::");
            bool body = c == '{' && (s.empty() || s.find(".entry") != string::npos || s.find(".func") != string::npos);
            if (depth == 0 && (c == ';' || label || body || (c == '}' && s.empty()) || one_line)) {
                at++;
                end = one_line ? 'd' : c;
                return trim(s);
            }
            depth += (c == '{') - (c == '}');
            if (isspace((unsigned char)c)) c = ' ';
            if (c != ' ' || !s.empty()) s += c;
            at++;
        }
        end = 0;
        return "";
    }
    int find_register(const string &name) {
        for (size_t i = scopes.size(); i-- > 0;)
            if (int *r = scopes[i].get(name)) return *r;
        return -1;
    }
    Operand special(const string &name) {
        static const struct {
            const char *name;
            Special special;
        } known[] = {{"%tid", S_TID}, {"%ntid", S_NTID}, {"%ctaid", S_CTAID}, {"%nctaid", S_NCTAID},
            {"%laneid", S_LANE}, {"%warpid", S_WARP}, {"%lanemask_lt", S_LANEMASK_LT}, {"%lanemask_le", S_LANEMASK_LE},
            {"%lanemask_eq", S_LANEMASK_EQ}, {"%lanemask_ge", S_LANEMASK_GE}, {"%lanemask_gt", S_LANEMASK_GT},
            {"%clock", S_CLOCK}, {"%clock64", S_CLOCK}, {"%globaltimer", S_CLOCK}};
        Operand o;
        o.kind = O_SPECIAL;
        size_t dot = name.find('.');
        if (dot != string::npos) o.component = (unsigned char)(name[dot + 1] - 'x');
        for (auto &s : known)
            if (name.substr(0, dot) == s.name) {
                o.special = s.special;
                return o;
            }
        give_up("special register " + name); /* %envreg*: the barrier of grid.sync() spins on memory */
        return o;
    }
    Operand symbol(const string &name) {
        Operand o;
        o.kind = O_SYMBOL;
        for (const Parameter &p : k->params)
            if (p.name == name) {
                o.value = p.offset;
                return o;
            }
        if (Variable *v = k->variables.get(name))
            o.value = v->offset;
        else
            give_up("symbol " + name);
        return o;
    }
    Operand operand(const string &raw) {
        string t = trim(raw);
        Operand o;
        if (t.empty()) return o;
        if (t[0] == '!') {
            o = operand(t.substr(1));
            o.negated = true;
            return o;
        }
        size_t bar = t.find('|');
        if (t[0] == '{' || (bar != string::npos && t[0] != '[')) {
            o.kind = O_VECTOR;
            for (const string &p : t[0] == '{' ? split(t.substr(1, t.size() - 2), ',')
                                               : vector<string>{t.substr(0, bar), t.substr(bar + 1)})
                o.parts.push_back(operand(p));
            return o;
        }
        if (t[0] == '[') {
            string inside = trim(t.substr(1, t.size() - 2)), base = inside;
            size_t plus = inside.find('+');
            o.kind = O_ADDRESS;
            if (plus != string::npos) {
                base = trim(inside.substr(0, plus));
                o.value = uint64_t(strtoll(trim(inside.substr(plus + 1)).c_str(), nullptr, 0));
            }
            o.reg = find_register(base);
            if (o.reg >= 0) return o;
            o.value += symbol(base).value;
            return o;
        }
        o.reg = find_register(t);
        if (o.reg >= 0)
            o.kind = O_REG;
        else if (t[0] == '%')
            o = special(t);
        else if (t == "_")
            o.kind = O_SINK;
        else if (starts_with(t, "0f") || starts_with(t, "0F") || starts_with(t, "0d") || starts_with(t, "0D"))
            o.value = strtoull(t.c_str() + 2, nullptr, 16);
        else if (t[0] == '-')
            o.value = uint64_t(strtoll(t.c_str(), nullptr, 0));
        else if (isdigit((unsigned char)t[0]))
            o.value = strtoull(t.c_str(), nullptr, 0);
        else
            o = symbol(t);
        return o;
    }
    void declare_registers(const vector<string> &w, const string &t) { /* .reg .b32 %r<7>, %x; */
        for (const string &raw : split(t.substr(t.find(w[1]) + w[1].size()), ',')) {
            string name = trim(raw);
            size_t range = name.find('<');
            if (range == string::npos) {
                scopes.back()[name] = int(k->registers++);
                continue;
            }
            for (int i = 0, n = atoi(name.c_str() + range + 1); i < n; i++)
                scopes.back()[name.substr(0, range) + std::to_string(i)] = int(k->registers++);
        }
    }
    void declare(const string &t) { /* .shared .align 4 .b8 name[128]; */
        vector<string> w = words(t);
        if (w[0] == ".reg") return declare_registers(w, t);
        bool external = false;
        char space = 0;
        size_t align = 1, count = 1, element = 1;
        string name;
        for (size_t i = 0; i < w.size(); i++) {
            if (w[i] == ".extern")
                external = true;
            else if (w[i] == ".shared")
                space = 's';
            else if (w[i] == ".local")
                space = 'l';
            else if (w[i] == ".align")
                align = size_t(atoi(w[++i].c_str()));
            else if (w[i][0] == '.' && type_named(w[i].substr(1)))
                element = size_t(bytes_of(type_named(w[i].substr(1))));
            else if (w[i][0] != '.' && name.empty()) {
                name = w[i];
                size_t bracket = name.find('[');
                if (bracket == string::npos) continue;
                count = size_t(atoi(name.c_str() + bracket + 1));
                name = name.substr(0, bracket);
            }
        }
        Variable v{0, count * element, space};
        if (space == 's' && external) {
            v.offset = kDynamic;
            module_shared[name] = v;
            if (k) k->variables[name] = v;
        } else if (space == 's') {
            size_t &total = k ? k->shared : module_shared_bytes;
            v.offset = round_up(total, align);
            total = v.offset + v.bytes;
            (k ? k->variables : module_shared)[name] = v;
        } else if (space == 'l' && k) {
            v.offset = round_up(k->local, align);
            k->local = v.offset + v.bytes;
            k->variables[name] = v;
        }
    }
    void modifier(Ins &i, const string &m) {
        if (Type t = type_named(m)) {
            (i.t ? i.t2 : i.t) = t;
            return;
        }
        if (i.code != MUL && i.code != MAD) /* there hi and lo select a half */
            for (const WordName &w : kWords)
                if (m == w.name) {
                    (i.word ? i.combine : i.word) = w.word;
                    i.unordered = i.unordered || w.unordered;
                    return;
                }
        for (const ModifierName &x : kModifiers)
            if (m == x.name) {
                i.flags |= x.bit;
                return;
            }
        if (m == "v2" || m == "v4" || m == "v8") i.vec = m[1] - '0';
        if (m == "shared" || m == "shared::cta") i.space = 's';
        if (m == "local" || m == "const") i.space = m[0];
        if (m == "param" || m == "param::entry") i.space = 'p';
        bool known = false;
        for (const char *x : kIgnored)
            known = known || m == x;
        if (!known) give_up("." + m + " in: " + i.text);
    }
    void instruction(const string &whole) {
        Ins i;
        string t = whole;
        i.line = line;
        i.text = whole;
        if (t[0] == '@') {
            size_t space = t.find(' ');
            i.predicate_negated = t[1] == '!';
            i.predicate = find_register(t.substr(i.predicate_negated ? 2 : 1, space - (i.predicate_negated ? 2 : 1)));
            t = trim(t.substr(space));
        }
        size_t space = t.find(' ');
        vector<string> parts = split(t.substr(0, space), '.');
        string rest = space == string::npos ? "" : trim(t.substr(space));
        for (const CodeName &c : kCodes)
            if (parts[0] == c.name) i.code = c.code;
        if (i.code == UNKNOWN) {
            give_up(whole);
            return;
        }
        for (size_t m = 1; m < parts.size(); m++)
            modifier(i, parts[m]);
        if (parts[0] == "addc" || parts[0] == "subc") i.flags |= M_CARRY_IN;
        if (parts[0] == "red") i.flags |= M_NO_DST;
        if (i.code == BRA) {
            branches.push_back({int(k->code.size()), rest});
        } else if (i.code == BRX) {
            vector<string> o = split(rest, ',');
            i.o.push_back(operand(o[0]));
            branches.push_back({int(k->code.size()), trim(o[1])});
        } else if (!rest.empty()) {
            for (const string &o : split(rest, ','))
                i.o.push_back(operand(o));
        }
        k->code.push_back(i);
    }
    void parameters(const string &list) {
        for (const string &raw : split(list, ',')) {
            vector<string> w = words(raw);
            if (w.empty()) continue;
            size_t align = 0, element = 1, count = 1;
            bool pointee = false; /* .ptr ... .align speaks of what is pointed to */
            string name;
            for (size_t i = 0; i < w.size(); i++) {
                if (w[i] == ".ptr")
                    pointee = true;
                else if (w[i] == ".align") {
                    i++;
                    if (!pointee) align = size_t(atoi(w[i].c_str()));
                } else if (w[i][0] == '.' && type_named(w[i].substr(1)))
                    element = size_t(bytes_of(type_named(w[i].substr(1))));
                else if (w[i][0] != '.')
                    name = w[i];
            }
            size_t bracket = name.find('[');
            if (bracket != string::npos) {
                count = size_t(atoi(name.c_str() + bracket + 1));
                name = name.substr(0, bracket);
            }
            size_t offset = round_up(k->param_bytes, align ? align : element);
            k->params.push_back({name, offset, element * count});
            k->param_bytes = offset + element * count;
        }
    }
    void open_function(const string &header) {
        std::unique_ptr<Kernel> kernel(new Kernel);
        k = kernel.get();
        k->variables = module_shared;
        k->shared = module_shared_bytes;
        scopes.assign(1, {});
        labels = Map<string, int>();
        branch_tables = Map<string, vector<string>>();
        branches.clear();
        size_t entry = header.find(".entry"), open = header.find('(', entry == string::npos ? 0 : entry);
        if (entry ==
            string::npos) { /* a device function that was not inlined: its callers stay with the host version */
            k->name = ".func " + std::to_string(g_kernels.entries.size());
            give_up("");
        } else {
            k->name = trim(header.substr(entry + 6, (open == string::npos ? header.size() : open) - entry - 6));
            if (open != string::npos) parameters(header.substr(open + 1, header.find(')', open) - open - 1));
        }
        g_kernels[k->name] = std::move(kernel);
    }
    void close_function() {
        auto resolve = [&](Ins &i, const string &label) {
            if (int *l = labels.get(label))
                i.targets.push_back(*l);
            else
                give_up("no label " + label);
        };
        for (auto &b : branches) {
            Ins &i = k->code[size_t(b.first)];
            vector<string> *table = i.code == BRX ? branch_tables.get(b.second) : nullptr;
            if (table)
                for (const string &l : *table)
                    resolve(i, trim(l));
            else
                resolve(i, b.second);
        }
        k = nullptr;
    }
    void run() {
        string last_label;
        for (char end = 1; end;) {
            string s = statement(end);
            if (end == '{' && !s.empty())
                open_function(s);
            else if (!k) {
                if (s.find(".shared") != string::npos) declare(s);
            } else if (end == '{')
                scopes.push_back({});
            else if (end == '}') {
                scopes.pop_back();
                if (scopes.empty()) close_function();
            } else if (end == ':') {
                labels[s] = int(k->code.size());
                last_label = s;
            } else if (starts_with(s, ".branchtargets"))
                branch_tables[last_label] = split(s.substr(14), ',');
            else if (!s.empty() && s[0] == '.') {
                if (!starts_with(s, ".pragma") && end != 'd') declare(s);
            } else if (!s.empty())
                instruction(s);
        }
    }
};

} // namespace
} // namespace ptx
} // namespace hcu

extern "C" int hcu_ptx_load(const char *path) {
    using namespace hcu::ptx;
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    string text;
    char buffer[65536];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        text.append(buffer, n);
    fclose(f);
    g_file = path;
    while (!g_kernels.entries.empty())
        g_kernels.erase(string(g_kernels.entries.back()->key));
    Parser(text).run();
    int usable = 0;
    for (auto *e : g_kernels.entries) {
        const Kernel &k = *e->value;
        usable += k.unsupported.empty();
        if (!k.unsupported.empty() && k.name[0] != '.')
            fprintf(stderr, "hostcuda: %s stays with its host version: %s\n", k.name.c_str(), k.unsupported.c_str());
    }
    return usable;
}
