class JobApplication < ApplicationRecord
end
