class Job < ApplicationRecord
end
