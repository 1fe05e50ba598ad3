// The program around QuickJS: loads one file, calls one function, hands over the result as JSON.
//
// The host gives inputs and takes results by the functions below. Results never travel through printed text: what a
// program prints goes to the descriptors 1 and 2. The host treats a result as data of the guest, whoever wrote it.
//
// Not here: the bounds (fuel, memory, time, output), which the host enforces (src/wasm).

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quickjs.h"

#define HOST(name) __attribute__((import_module("host"), import_name(#name)))

// Inputs of the host, in the order in which it lists them.
enum { FILE_NAME, FUNCTION_NAME, ARGUMENTS };

// Length in bytes of an input, and its text.
HOST(input_length) extern int32_t host_input_length(int32_t input);
HOST(input_read) extern void host_input_read(int32_t input, char *to);
// Length in bytes of a file of the job, -1 if there is none, and its text.
HOST(file_length) extern int32_t host_file_length(const char *name, int32_t name_length);
HOST(file_read) extern void host_file_read(const char *name, int32_t name_length, char *to);
// Results: the returned value as JSON, no value, or the text of an exception and the stage that it comes from.
HOST(returned) extern void host_returned(const char *text, int32_t length);
HOST(returned_nothing) extern void host_returned_nothing(void);
HOST(failed) extern void host_failed(int32_t stage, const char *text, int32_t length);

// Stages of a run: until the function is found, while it runs, and while its value becomes JSON.
enum { LOADING, CALLING, RETURNING };

// Bytes of the stack that JavaScript may use, of the 2 MiB that the linker gives (tools/quickjs-wasm).
#define STACK_SIZE (1024 * 1024)

// --- texts of the host ---------------------------------------------------------------------------

typedef struct {
  char *text; // ends with a zero byte, which `length` does not count
  int32_t length;
} Text;

static Text allocate(int32_t length) {
  Text text = {malloc((size_t)length + 1), length};
  if (text.text == NULL) abort();
  text.text[length] = '\0';
  return text;
}

static Text read_input(int32_t input) {
  Text text = allocate(host_input_length(input));
  host_input_read(input, text.text);
  return text;
}

// Returns whether the job has the file.
static bool read_file(const char *name, Text *file) {
  int32_t name_length = (int32_t)strlen(name);
  int32_t length = host_file_length(name, name_length);
  if (length < 0) return false;
  *file = allocate(length);
  host_file_read(name, name_length, file->text);
  return true;
}

// --- results --------------------------------------------------------------------------------------

static void report_text(JSContext *context, int32_t stage, JSValueConst value) {
  size_t length;
  const char *text = JS_ToCStringLen(context, &length, value);
  if (text == NULL) { // the exception cannot be written as a text
    JS_FreeValue(context, JS_GetException(context));
    static const char unknown[] = "an exception that has no text";
    host_failed(stage, unknown, sizeof unknown - 1);
    return;
  }
  host_failed(stage, text, (int32_t)length);
  JS_FreeCString(context, text);
}

static void report_exception(JSContext *context, int32_t stage) {
  report_text(context, stage, JS_GetException(context));
}

// The class of `Number` objects, which JSON.stringify writes as their numbers.
static JSClassID number_class;

// A replacer for JSON.stringify, which writes NaN and infinities as null: they have no JSON form, at any depth.
static JSValue refuse_non_finite(JSContext *context, JSValueConst holder, int count, JSValueConst *arguments) {
  (void)holder, (void)count;
  bool boxed = JS_GetClassID(arguments[1]) == number_class;
  JSValue value = boxed ? JS_ToNumber(context, arguments[1]) : JS_DupValue(context, arguments[1]);
  double number;
  if (!JS_IsNumber(value)) return value;
  if (JS_ToFloat64(context, &number, value) < 0) return JS_EXCEPTION;
  if (isfinite(number)) return value;
  return JS_ThrowTypeError(context, "%s has no JSON form", isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
}

static void report_value(JSContext *context, JSValueConst value) {
  JSValue replacer = JS_NewCFunction(context, refuse_non_finite, "", 2);
  JSValue json = JS_IsException(replacer) ? replacer : JS_JSONStringify(context, value, replacer, JS_UNDEFINED);
  if (JS_IsException(json)) {
    report_exception(context, RETURNING);
  } else if (JS_IsUndefined(json)) {
    host_returned_nothing();
  } else {
    size_t length;
    const char *text = JS_ToCStringLen(context, &length, json);
    if (text == NULL) report_exception(context, RETURNING);
    else host_returned(text, (int32_t)length);
  }
}

// --- promises -------------------------------------------------------------------------------------

// Runs what is queued until nothing is left; an exception of a job is the exception of its promise.
static void run_queue(JSContext *context) {
  JSContext *of_job;
  while (JS_ExecutePendingJob(JS_GetRuntime(context), &of_job) != 0) {
    if (JS_HasException(context)) JS_FreeValue(context, JS_GetException(context));
  }
}

// Returns the value of a promise, or the value itself if it is none. Takes over `value`.
static JSValue settle(JSContext *context, JSValue value) {
  if (!JS_IsPromise(value)) return value;
  run_queue(context);
  JSPromiseStateEnum state = JS_PromiseState(context, value);
  if (state == JS_PROMISE_PENDING) return JS_ThrowTypeError(context, "the promise was never settled");
  JSValue result = JS_PromiseResult(context, value);
  return state == JS_PROMISE_REJECTED ? JS_Throw(context, result) : result;
}

// --- globals ---------------------------------------------------------------------------------------

static void write_all(int descriptor, const char *text, size_t length) {
  while (length > 0) {
    ssize_t written = write(descriptor, text, length);
    if (written <= 0) return;
    text += written;
    length -= (size_t)written;
  }
}

// console.log and console.error: arguments as texts, with spaces between and a newline at the end.
static JSValue print(JSContext *context, JSValueConst this, int count, JSValueConst *arguments, int descriptor) {
  (void)this;
  for (int i = 0; i < count; i++) {
    size_t length;
    const char *text = JS_ToCStringLen(context, &length, arguments[i]);
    if (text == NULL) return JS_EXCEPTION;
    if (i > 0) write_all(descriptor, " ", 1);
    write_all(descriptor, text, length);
    JS_FreeCString(context, text);
  }
  write_all(descriptor, "\n", 1);
  return JS_UNDEFINED;
}

static void add_console(JSContext *context, JSValueConst global) {
  JSValue console = JS_NewObject(context);
  JS_SetPropertyStr(context, console, "log", JS_NewCFunctionMagic(context, print, "log", 1, JS_CFUNC_generic_magic, 1));
  JS_SetPropertyStr(context, console, "error", JS_NewCFunctionMagic(context, print, "error", 1, JS_CFUNC_generic_magic, 2));
  JS_SetPropertyStr(context, global, "console", console);
}

// `module.exports` and `exports`, for files in the manner of CommonJS. Returns `module`.
static JSValue add_module(JSContext *context, JSValueConst global) {
  JSValue module = JS_NewObject(context);
  JSValue exports = JS_NewObject(context);
  JS_SetPropertyStr(context, global, "exports", JS_DupValue(context, exports));
  JS_SetPropertyStr(context, module, "exports", exports);
  JS_SetPropertyStr(context, global, "module", JS_DupValue(context, module));
  return module;
}

// --- loading ---------------------------------------------------------------------------------------

static JSValue compile_module(JSContext *context, const char *name, Text file) {
  return JS_Eval(context, file.text, (size_t)file.length, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
}

// Loads what a module imports: other files of the job.
static JSModuleDef *load_import(JSContext *context, const char *name, void *opaque) {
  (void)opaque;
  Text file;
  if (!read_file(name, &file)) {
    JS_ThrowReferenceError(context, "the job has no file '%s'", name);
    return NULL;
  }
  JSValue module = compile_module(context, name, file);
  if (JS_IsException(module)) return NULL;
  JSModuleDef *definition = JS_VALUE_GET_PTR(module);
  JS_FreeValue(context, module); // the context holds it
  return definition;
}

// Returns the export of that name, else the default export if it is a function.
static JSValue find_in_module(JSContext *context, const char *name, Text file, const char *function) {
  JSValue module = compile_module(context, name, file);
  if (JS_IsException(module)) return module;
  JSModuleDef *definition = JS_VALUE_GET_PTR(module);
  JSValue ran = settle(context, JS_EvalFunction(context, module));
  if (JS_IsException(ran)) return ran;
  JSValue exports = JS_GetModuleNamespace(context, definition);
  if (JS_IsException(exports)) return exports;
  JSValue found = JS_GetPropertyStr(context, exports, function);
  return JS_IsUndefined(found) ? JS_GetPropertyStr(context, exports, "default") : found;
}

static bool is_identifier(Text name) {
  for (int32_t i = 0; i < name.length; i++) {
    char c = name.text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return name.length > 0;
}

// Returns the member of `module.exports`, else what the script declares under that name, `const` and `let` included.
static JSValue find_in_script(JSContext *context, const char *name, Text file, Text function) {
  JSValue global = JS_GetGlobalObject(context);
  JSValue module = add_module(context, global);
  JSValue ran = JS_Eval(context, file.text, (size_t)file.length, name, JS_EVAL_TYPE_GLOBAL);
  if (JS_IsException(ran)) return ran;
  JSValue exports = JS_GetPropertyStr(context, module, "exports");
  if (JS_IsException(exports)) return exports;
  if (JS_IsObject(exports)) {
    JSValue found = JS_GetPropertyStr(context, exports, function.text);
    if (!JS_IsUndefined(found)) return found;
  }
  if (!is_identifier(function)) return JS_UNDEFINED;
  return JS_Eval(context, function.text, (size_t)function.length, name, JS_EVAL_TYPE_GLOBAL);
}

// Returns whether the file is a module: no script, because of `import`, `export` or `await`, but correct as a module.
static bool is_module(JSContext *context, const char *name, Text file) {
  JSValue script = JS_Eval(context, file.text, (size_t)file.length, name, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
  if (!JS_IsException(script)) {
    JS_FreeValue(context, script);
    return false;
  }
  JS_FreeValue(context, JS_GetException(context));
  return JS_DetectModule(file.text, (size_t)file.length);
}

static JSValue find_function(JSContext *context, const char *name, Text file, Text function) {
  JSValue found = is_module(context, name, file)
    ? find_in_module(context, name, file, function.text)
    : find_in_script(context, name, file, function);
  if (JS_IsException(found) || JS_IsFunction(context, found)) return found;
  return JS_ThrowReferenceError(context, "'%s' has no function '%s'", name, function.text);
}

// --- the call --------------------------------------------------------------------------------------

static JSValue call_with_array(JSContext *context, JSValueConst function, JSValueConst array) {
  int64_t count;
  if (JS_GetLength(context, array, &count) < 0) return JS_EXCEPTION;
  JSValue *arguments = calloc((size_t)count + 1, sizeof *arguments);
  if (arguments == NULL) return JS_ThrowOutOfMemory(context);
  for (int64_t i = 0; i < count; i++) arguments[i] = JS_GetPropertyInt64(context, array, i);
  return JS_Call(context, function, JS_UNDEFINED, (int)count, (JSValueConst *)arguments);
}

// The arguments are parsed before the file runs, which could change what arrays and objects inherit.
static JSValue run(JSContext *context, int32_t *stage) {
  Text name = read_input(FILE_NAME), function = read_input(FUNCTION_NAME), json = read_input(ARGUMENTS);
  Text file;
  if (!read_file(name.text, &file)) return JS_ThrowReferenceError(context, "the job has no file '%s'", name.text);
  JSValue arguments = JS_ParseJSON(context, json.text, (size_t)json.length, "arguments");
  if (JS_IsException(arguments)) return arguments;
  JSValue found = find_function(context, name.text, file, function);
  if (JS_IsException(found)) return found;
  *stage = CALLING;
  return settle(context, call_with_array(context, found, arguments));
}

// Nothing is freed at the end: the host drops the whole memory.
int main(void) {
  JSRuntime *runtime = JS_NewRuntime();
  if (runtime == NULL) abort();
  JS_SetMaxStackSize(runtime, STACK_SIZE);
  JS_SetModuleLoaderFunc(runtime, NULL, load_import, NULL);
  JSContext *context = JS_NewContext(runtime);
  if (context == NULL) abort();
  JSValue global = JS_GetGlobalObject(context);
  add_console(context, global);
  number_class = JS_GetClassID(JS_ToObject(context, JS_NewInt32(context, 0)));
  int32_t stage = LOADING;
  JSValue result = run(context, &stage);
  if (JS_IsException(result)) report_exception(context, stage);
  else report_value(context, result);
  return 0;
}
