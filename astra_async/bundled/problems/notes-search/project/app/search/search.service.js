(function () {
  'use strict';

  angular.module('notesApp').factory('searchService', searchService);

  function searchService() {
    return { find: find, highlight: highlight };
  }

  /** The notes that a query finds, in the order in which they are given. */
  function find(notes, query) {
    return notes;
  }

  /** A text cut into parts `{ text, match }`, where `match` says whether the query is found there. */
  function highlight(text, query) {
    return [{ text: text, match: false }];
  }
})();
