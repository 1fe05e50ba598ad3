//! Durations of a database's operations: [`OperationObserver`] receives them, [`measured_store!`] declares a wrapper of
//! storage traits that reports each call to it.
//!
//! An operation is one call of a storage trait, which may execute several statements. Its name is that of the method, so
//! there are as many names as methods, and none contains SQL or data.
//!
//! Not here: metrics (`serving`), which the storage crates do not know.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Receives the durations of operations.
pub trait OperationObserver: Debug + Send + Sync + 'static {
    /// Records an operation that ended; `error_type` is the class of its error. A cancelled operation is not recorded.
    fn ended(&self, operation: StoreOperation, error_type: Option<&'static str>, took: Duration);
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOperation {
    /// Number of the operation among those of its store, counted from zero.
    pub number: usize,
    /// Name of the operation.
    pub name: &'static str,
}

/// Error with a class of few values.
pub trait ErrorType {
    /// Returns the class, in lower case with underscores.
    fn error_type(&self) -> &'static str;
}

/// Runs an operation, and reports its duration.
///
/// # Errors
/// The error of the operation.
pub async fn timed<T, E: ErrorType>(
    observer: &dyn OperationObserver,
    operation: StoreOperation,
    running: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let begun = Instant::now();
    let ended = running.await;
    observer.ended(operation, ended.as_ref().err().map(E::error_type), begun.elapsed());
    ended
}

/// Declares a wrapper of a store that implements the listed traits by passing each call on, and reports its duration to an
/// [`OperationObserver`]. The caller needs `async-trait` and the traits in scope, and an enumeration of the methods.
///
/// A trait may begin with methods of its own in brackets, which are not measured: `self.inner` is the wrapped store.
#[macro_export]
macro_rules! measured_store {
    (
        $(#[$wrapper_meta:meta])* pub struct $wrapper:ident over $methods:ident;
        $(impl $trait:ident $([$($own:tt)*])? {
            $($method:ident $function:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*
        })*
    ) => {
        $(#[$wrapper_meta])*
        #[derive(Debug)]
        pub struct $wrapper<S: ?Sized> {
            inner: ::std::sync::Arc<S>,
            observer: ::std::sync::Arc<dyn $crate::OperationObserver>,
        }

        impl<S: ?Sized> $wrapper<S> {
            /// Wraps a store.
            pub fn new(
                inner: ::std::sync::Arc<S>,
                observer: ::std::sync::Arc<dyn $crate::OperationObserver>,
            ) -> Self {
                Self { inner, observer }
            }
        }

        $(#[::async_trait::async_trait]
        impl<S: $trait + ?Sized> $trait for $wrapper<S> {
            $($($own)*)?

            $(async fn $function(&self $(, $argument: $type)*) -> $answer {
                let operation = $crate::StoreOperation {
                    number: $methods::$method as usize,
                    name: stringify!($function),
                };
                $crate::timed(&*self.observer, operation, self.inner.$function($($argument),*)).await
            })*
        })*
    };
}
